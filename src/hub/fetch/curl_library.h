// libcurl, loaded when the first request is made: with it come some thirty libraries, which no
// other command needs, and the machine's own copy knows where the machine keeps its certificates.
//
//   const CurlLibrary& curl = CurlLibrary::get();
//   CURL* handle = curl.easy_init();
#pragma once

#include <curl/curl.h>

// The header's checks of arguments are macros of the functions' names, which are members here.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace antisd::inline hub {

struct CurlLibrary {
  // RunError, with what to install, where the machine has none.
  static const CurlLibrary& get();

  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_set) url_set;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_free) free;
};

}  // namespace antisd::inline hub
