// A table of texts that all ranks of a run see: where they meet and tell each other that they live.
// One process holds it (rank 0, or torchrun's agent); the others have a connection to it.
//
//   store.set("phase/2", "sampling of step 12");
//   const std::vector<std::string> phases = store.get({"phase/0", "phase/1", "phase/2"});
//
// Calls may be made from one thread at a time; a clone is for another thread. Every call but set()
// throws RunError if the process that holds the store is gone: set() does not wait for an answer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace antisd::inline dist {

class Store {
 public:
  virtual ~Store() = default;

  virtual void set(const std::string& key, const std::string& value) = 0;
  virtual std::optional<std::string> find(const std::string& key) = 0;
  // Whether all of the keys are there, in one message and its answer.
  virtual bool has(const std::vector<std::string>& keys) = 0;
  // The values of keys that are all there, in one message and its answer.
  virtual std::vector<std::string> get(const std::vector<std::string>& keys) = 0;
  // Adds to a counter, which is 0 at first, and returns the sum.
  virtual std::int64_t add(const std::string& key, std::int64_t value) = 0;
  virtual std::unique_ptr<Store> clone() = 0;
};

// A store for the threads of one process. Clones share the table.
class MemoryStore : public Store {
 public:
  void set(const std::string& key, const std::string& value) override;
  std::optional<std::string> find(const std::string& key) override;
  bool has(const std::vector<std::string>& keys) override;
  std::vector<std::string> get(const std::vector<std::string>& keys) override;
  std::int64_t add(const std::string& key, std::int64_t value) override;
  std::unique_ptr<Store> clone() override;

 private:
  struct Table {
    std::mutex mutex;
    std::map<std::string, std::string> values;
  };
  std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

}  // namespace antisd::inline dist
