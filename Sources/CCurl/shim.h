#include <curl/curl.h>

// curl_easy_setopt and curl_easy_getinfo are variadic, which Swift cannot call.

static inline CURLcode sluice_curl_set_long(CURL *handle, CURLoption option, long value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode sluice_curl_set_size(CURL *handle, CURLoption option, curl_off_t value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode sluice_curl_set_string(CURL *handle, CURLoption option, const char *value) {
  return curl_easy_setopt(handle, option, value);
}

static inline CURLcode sluice_curl_set_pointer(CURL *handle, CURLoption option, const void *value) {
  return curl_easy_setopt(handle, option, value);
}

typedef size_t (*sluice_curl_data_function)(
  char *bytes, size_t size, size_t count, void *context);

static inline CURLcode sluice_curl_set_data_function(
    CURL *handle, CURLoption option, sluice_curl_data_function function) {
  return curl_easy_setopt(handle, option, function);
}

static inline CURLMcode sluice_curl_multi_set_long(
    CURLM *multi, CURLMoption option, long value) {
  return curl_multi_setopt(multi, option, value);
}

// The result of a finished transfer, out of the message's union.
static inline CURLcode sluice_curl_message_result(const CURLMsg *message) {
  return message->data.result;
}
