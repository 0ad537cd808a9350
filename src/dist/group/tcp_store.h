// The run's store over TCP: c10d's TCPStore, as torchrun's agent holds one too.
#pragma once

#include <memory>
#include <string>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "dist/place.h"
#include "dist/store.h"

namespace antisd::inline dist {

class TcpStore : public Store {
 public:
  // `place` says who holds the store and where, and what the keys begin with.
  TcpStore(c10::intrusive_ptr<c10d::Store> store, const Place& place);

  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key) override;
  bool has(const std::vector<std::string>& keys) override;
  std::vector<std::string> get(const std::vector<std::string>& keys) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  std::unique_ptr<Store> clone() override;

  // For c10d: keys that begin with the meeting and `part`.
  c10::intrusive_ptr<c10d::Store> part(const std::string& part) const;

 private:
  std::vector<std::string> whole_keys(const std::vector<std::string>& keys) const;

  c10::intrusive_ptr<c10d::Store> store_;
  Place place_;
};

// Rank 0 opens the port, unless the store is running already; the others connect to it and wait up
// to `wait_s` seconds for it. RunError if the port is in use or nobody answers there.
std::unique_ptr<TcpStore> open_store(const Place& place, double wait_s);

// The first line of a c10d error, which goes on with a stack.
std::string first_line(const std::exception& error);

}  // namespace antisd::inline dist
