#include "hub/fetch/curl_library.h"

#include <dlfcn.h>

#include "core/error.h"

namespace antisd::inline hub {
namespace {

constexpr const char* kLibrary = "libcurl.so.4";

[[noreturn]] void throw_no_curl() {
  const char* reason = dlerror();
  throw RunError(
      reason != nullptr ? reason : "it cannot be loaded",
      {.where = kLibrary, .remedy = "install libcurl (Debian: libcurl4), or use `hf download`"});
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw_no_curl();
}

CurlLibrary load() {
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw_no_curl();
  decltype(&::curl_global_init) global_init = nullptr;
  CurlLibrary curl{};
  find(library, "curl_global_init", global_init);
  find(library, "curl_easy_init", curl.easy_init);
  find(library, "curl_easy_cleanup", curl.easy_cleanup);
  find(library, "curl_easy_reset", curl.easy_reset);
  find(library, "curl_easy_setopt", curl.easy_setopt);
  find(library, "curl_easy_getinfo", curl.easy_getinfo);
  find(library, "curl_easy_perform", curl.easy_perform);
  find(library, "curl_easy_strerror", curl.easy_strerror);
  find(library, "curl_slist_append", curl.slist_append);
  find(library, "curl_slist_free_all", curl.slist_free_all);
  find(library, "curl_url", curl.url);
  find(library, "curl_url_set", curl.url_set);
  find(library, "curl_url_get", curl.url_get);
  find(library, "curl_url_cleanup", curl.url_cleanup);
  find(library, "curl_free", curl.free);
  global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

}  // namespace

const CurlLibrary& CurlLibrary::get() {
  static const CurlLibrary library = load();
  return library;
}

}  // namespace antisd::inline hub
