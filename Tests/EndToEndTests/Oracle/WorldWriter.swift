import Foundation
import TestSupport

/// Makes transactions for a world: several statements, delays, savepoints, key changes, cascades, TRUNCATE, rollbacks.
struct WorldWriter {
  let number: Int
  let world: World
  var random: SeededGenerator

  /// The script of one transaction; it bumps the writer's marker, so that what a replica shows tells what it contains.
  mutating func transaction() -> String {
    var script = "BEGIN;\n"
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      let text = statement()
      if chance(8) {
        script += "SAVEPOINT s;\n\(text)ROLLBACK TO s;\n"
      } else if chance(8) {
        script += "SAVEPOINT s;\n\(text)RELEASE s;\n"
      } else {
        script += text
      }
      if chance(5) {
        script += "SELECT pg_sleep(\(Double.random(in: 0...0.12, using: &random)));\n"
      }
    }
    script += "UPDATE markers SET version = version + 1 WHERE id = \(number);\n"
    return script + (chance(12) ? "ROLLBACK;\n" : "COMMIT;\n")
  }

  private mutating func statement() -> String {
    let table = world.tables.randomElement(using: &random) ?? world.tables[0]
    let some = "(hashtext(ctid::text) + \(Int.random(in: 0...99, using: &random))) % 7 = 0"
    switch Int.random(in: 0...19, using: &random) {
    case 0...5:
      return insert(table)
    case 6:
      return "UPDATE \(table.name) SET n = n + 1, ratio = n / 4.0 WHERE \(some);\n"
    case 7:
      return "UPDATE \(table.name) SET grp = \(group()), owner = \(owner()) WHERE \(some);\n"
    case 8:
      return "UPDATE \(table.name) SET hidden = NOT hidden, label = \(label()) WHERE \(some);\n"
    case 9:
      return "UPDATE \(table.name) SET tags = \(tags()) WHERE \(some);\n"
    case 10:
      return "UPDATE \(table.name) SET label = label WHERE \(some);\n"
    case 11:
      return changeKey(table)
    case 12, 13:
      return "DELETE FROM \(table.name) WHERE \(some);\n"
    case 14:
      return chance(4)
        ? "TRUNCATE \(table.name) CASCADE;\n" : "DELETE FROM \(table.name) WHERE n < 10;\n"
    case 15:
      return """
        WITH gone AS (DELETE FROM memberships WHERE \(some) RETURNING grp)
        INSERT INTO memberships (user_id, grp) SELECT \(user()), grp FROM gone;

        """
    case 16:
      return "DELETE FROM memberships WHERE \(some);\n"
    case 17:
      return "UPDATE memberships SET active = NOT active, grp = \(group()) WHERE \(some);\n"
    default:
      return "INSERT INTO memberships (user_id, grp) VALUES (\(user()), \(group()));\n"
    }
  }

  private mutating func insert(_ table: World.Table) -> String {
    let parent = table.parent.map { name in
      ", (SELECT id FROM \(name) ORDER BY hashtext(id::text) + \(Int.random(in: 0...999, using: &random)) LIMIT 1)"
    }
    let base = Int.random(in: 0...300, using: &random)
    let key =
      switch table.key {
      case .integer: "\(base) + i"
      case .text: "'key ' || \(base) + i"
      case .uuid: "md5((\(base) + i)::text)::uuid"
      case .composite: "(\(base) + i) % 20, 'b' || (\(base) + i) / 20"
      }
    return """
      INSERT INTO \(table.name) (\(table.key == .composite ? "a, b" : "id"), grp, owner, n, label, tags, hidden, ratio, price, at\(parent == nil ? "" : ", parent"))
      SELECT \(key), \(group()), \(owner()), \(Int.random(in: 0...99, using: &random)), \(label()), \(tags()), \(chance(3) ? "NULL" : "i % 2 = 0"),
        i / 4.0, \(base) + 0.50, timestamptz '2026-03-29 00:30:00+01' + i * interval '1 hour 1.5 seconds'\(parent ?? "")
      FROM generate_series(1, \(Int.random(in: 1...8, using: &random))) AS i
      ON CONFLICT DO NOTHING;

      """
  }

  private mutating func changeKey(_ table: World.Table) -> String {
    let from = Int.random(in: 0...300, using: &random)
    let to = Int.random(in: 400...9999, using: &random)
    switch table.key {
    case .integer: return "UPDATE \(table.name) SET id = \(to) WHERE id = \(from);\n"
    case .text: return "UPDATE \(table.name) SET id = 'key \(to)' WHERE id = 'key \(from)';\n"
    case .uuid:
      return
        "UPDATE \(table.name) SET id = md5('\(to)')::uuid WHERE id = md5('\(from)')::uuid;\n"
    case .composite:
      return
        "UPDATE \(table.name) SET b = b || 'x\(to)' WHERE a = \(from % 20) AND length(b) < 20;\n"
    }
  }

  // MARK: - Values

  private mutating func chance(_ one: Int) -> Bool { Int.random(in: 1...one, using: &random) == 1 }

  private mutating func group() -> String {
    chance(10) ? "NULL" : String(Int.random(in: 1...World.groups, using: &random))
  }

  private mutating func user() -> String {
    "'\(world.users.randomElement(using: &random)?.name ?? "")'"
  }

  private mutating func owner() -> String { chance(3) ? "NULL" : user() }

  private mutating func label() -> String {
    let label = World.labels.randomElement(using: &random) ?? ""
    return "'\(label.replacingOccurrences(of: "'", with: "''"))'"
  }

  private mutating func tags() -> String {
    if chance(8) { return "NULL" }
    let tags = World.tags.filter { _ in Int.random(in: 0...2, using: &random) == 0 }
    let json = tags.map { "\"\($0.replacingOccurrences(of: "\"", with: "\\\""))\"" }
    return "'[\(json.joined(separator: ","))]'::jsonb"
  }
}
