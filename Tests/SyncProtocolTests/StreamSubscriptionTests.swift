import Testing

@testable import SyncProtocol

@Suite("Subscriptions as people write them")
struct StreamSubscriptionTests {
  @Test(
    "a name, and parameters by key",
    arguments: [
      ("lists", "lists", "{}"), ("lists?", "lists", "{}"), ("lists?a=", "lists", #"{"a":""}"#),
      ("lists?list=a1&n=5", "lists", #"{"list":"a1","n":5}"#),
      (
        #"s?a="5"&b=[1,2]&c=true&d=null&e=007"#, "s",
        #"{"a":"5","b":[1,2],"c":true,"d":null,"e":"007"}"#
      ),
      ("a%3Fb?x%26y=1%3D2", "a?b", #"{"x&y":"1=2"}"#), ("s?q=a=b?c", "s", #"{"q":"a=b?c"}"#),
      ("s?x=1e999999", "s", #"{"x":"1e999999"}"#), ("s?x={\"a\":", "s", #"{"x":"{\"a\":"}"#),
      ("s?x=%C3%A9", "s", "{\"x\":\"\u{E9}\"}"),
    ])
  func reads(text: String, stream: String, parameters: String) throws {
    let subscription = try StreamSubscription(parsing: text)
    #expect(subscription == StreamSubscription(stream: stream, parametersJSON: parameters))
    #expect(StreamRequest.isObject(subscription.parametersJSON))
  }

  @Test(
    "what cannot be read is refused",
    arguments: ["", "?a=1", "s?a", "s?a=1&a=2", "s?a=%4", "s?a=%zz", "s?a=%FF", "s?a=%00", "s%00"])
  func refuses(text: String) {
    #expect(throws: ProtocolError.self) { try StreamSubscription(parsing: text) }
  }
}
