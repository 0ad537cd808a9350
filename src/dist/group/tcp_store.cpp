#include "dist/group/tcp_store.h"

#include <algorithm>
#include <cstdlib>

#include <c10/util/Logging.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <netdb.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "core/error.h"
#include "dist/in_time.h"

namespace antisd::inline dist {
namespace {

std::vector<std::uint8_t> bytes_of(const std::string& text) {
  return {text.begin(), text.end()};
}

std::string text_of(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

std::string where(const Place& place) {
  return fmt::format("{}:{}", place.host, place.port);
}

// c10d writes what it throws to stderr too, with stack frames, as errors.
void silence_c10d() {
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

using Opened = c10::intrusive_ptr<c10d::TCPStore>;

// Null where a service takes the connection that is no store, and never answers.
Opened open_in_time(const Place& place, bool serves, double wait_s) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(place.port);
  options.isServer = serves;
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(wait_s * 1000));
  return in_time<Opened>(wait_s + 1,
                         [host = place.host, options] {
                           return c10::make_intrusive<c10d::TCPStore>(host, options);
                         })
      .value_or(Opened());
}

}  // namespace

std::string first_line(const std::exception& error) {
  std::string text = error.what();
  text.resize(std::min(text.find('\n'), text.size()));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::unique_ptr<TcpStore> open_store(const Place& place, double wait_s) {
  silence_c10d();
  const bool serves = place.rank == 0 && !place.store_is_running;
  Opened store;
  std::string problem = "timed out";
  try {
    store = open_in_time(place, serves, wait_s);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    problem = first_line(error);
  }
  if (store) return std::make_unique<TcpStore>(std::move(store), place);
  if (serves && problem.find("EADDRINUSE") != std::string::npos)
    throw RunError(
        fmt::format("port {} of this machine, where the ranks should meet, is in use", place.port),
        {.remedy = "choose another MASTER_PORT, or end the program that uses this one"});
  if (problem.find("timed out") != std::string::npos)
    problem = fmt::format("nobody answers there as rank 0 would, for {:.0f} s", wait_s);
  throw RunError(fmt::format("rank {} cannot reach the ranks' store at {}: {}", place.rank,
                             where(place), problem),
                 {.remedy = "look at the output of rank 0 and whether a firewall closes the port"});
}

TcpStore::TcpStore(c10::intrusive_ptr<c10d::Store> store, const Place& place)
    : store_(std::move(store)), place_(place) {}

c10::intrusive_ptr<c10d::Store> TcpStore::part(const std::string& part) const {
  return c10::make_intrusive<c10d::PrefixStore>(place_.meeting + "/" + part, store_);
}

namespace {

// Runs a call of c10d's store and turns what it throws into a RunError.
template <typename Call>
auto ask_store(const Place& place, const Call& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw RunError(
        fmt::format("the ranks' store at {} does not answer: {}", where(place), first_line(error)),
        {.remedy = "look at the output of rank 0"});
  }
}

}  // namespace

std::vector<std::string> TcpStore::whole_keys(const std::vector<std::string>& keys) const {
  std::vector<std::string> whole;
  for (const std::string& key : keys)
    whole.push_back(place_.meeting + "/" + key);
  return whole;
}

void TcpStore::set(const std::string& key, const std::string& value) {
  ask_store(place_, [&] { store_->set(place_.meeting + "/" + key, bytes_of(value)); });
}

std::optional<std::string> TcpStore::find(const std::string& key) {
  const std::string whole = place_.meeting + "/" + key;
  return ask_store(place_, [&]() -> std::optional<std::string> {
    if (!store_->check({whole})) return std::nullopt;
    return text_of(store_->get(whole));
  });
}

bool TcpStore::has(const std::vector<std::string>& keys) {
  return ask_store(place_, [&] { return store_->check(whole_keys(keys)); });
}

std::vector<std::string> TcpStore::get(const std::vector<std::string>& keys) {
  std::vector<std::string> values;
  ask_store(place_, [&] {
    for (const std::vector<std::uint8_t>& value : store_->multiGet(whole_keys(keys)))
      values.push_back(text_of(value));
  });
  return values;
}

std::int64_t TcpStore::add(const std::string& key, std::int64_t value) {
  return ask_store(place_, [&] { return store_->add(place_.meeting + "/" + key, value); });
}

std::unique_ptr<Store> TcpStore::clone() {
  return ask_store(place_, [&] { return std::make_unique<TcpStore>(store_->clone(), place_); });
}

}  // namespace antisd::inline dist

// In the whole program the name of an address is its numbers: this function takes the place of
// libc's. c10d's store asks for the name of whoever connects, only to log it, and serves nobody
// meanwhile. Where no name server answers, that is 5 s for each of two connections of every rank.
extern "C" __attribute__((visibility("default"))) int getnameinfo(
    const sockaddr* address, socklen_t address_length, char* host, socklen_t host_length,
    char* service, socklen_t service_length, int flags) {
  using Function = decltype(&::getnameinfo);
  static const auto libc_function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getnameinfo"));
  return libc_function(address, address_length, host, host_length, service, service_length,
                       flags | NI_NUMERICHOST);
}
