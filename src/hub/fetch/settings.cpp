#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "core/error.h"
#include "hub/fetch/fetch.h"
#include "io/atomic_file.h"

namespace antisd::inline hub {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxTokenBytes = 4096;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_true(const char* name) {
  std::string value = variable(name);
  for (char& c : value)
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// Without white space around it; a token is a header's value, so it has none inside.
std::string checked_token(std::string token, const std::string& where) {
  std::erase(token, '\r');
  std::erase(token, '\n');
  const std::size_t first = token.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  token = token.substr(first, token.find_last_not_of(" \t") - first + 1);
  const bool plain =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!plain)
    throw InputError("it holds something else than a token",
                     {.where = where, .remedy = "log in again: `hf auth login`"});
  return token;
}

std::string find_token() {
  if (is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) return "";
  for (const char* name : {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"})
    if (std::string token = checked_token(variable(name), name); !token.empty()) return token;
  const fs::path file = path_variable("HF_TOKEN_PATH").value_or(home_folder() / "token");
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return "";
  return checked_token(read_file(file, kMaxTokenBytes), file.string());
}

std::string find_endpoint() {
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  while (endpoint.ends_with('/'))
    endpoint.pop_back();
  if (origin_of(endpoint).empty())
    throw InputError(fmt::format("'{}' is not an http(s) address", endpoint),
                     {.where = "HF_ENDPOINT", .remedy = "leave it out, or write https://..."});
  return endpoint;
}

}  // namespace

FetchSettings fetch_settings(const std::string& user_agent) {
  FetchSettings settings{.endpoint = find_endpoint(),
                         .token = find_token(),
                         .cache = cache_folder(),
                         .offline = is_true("HF_HUB_OFFLINE") || is_true("TRANSFORMERS_OFFLINE"),
                         .user_agent = user_agent};
  if (const std::string seconds = variable("HF_HUB_DOWNLOAD_TIMEOUT"); !seconds.empty())
    settings.silence_s = std::clamp(std::atoll(seconds.c_str()), 1LL, 3600LL);
  return settings;
}

}  // namespace antisd::inline hub
