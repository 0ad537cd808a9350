#include <iostream>
#include <memory>

#include <poll.h>
#include <unistd.h>

#include "cli/rows.h"
#include "core/error.h"
#include "io/jsonl.h"
#include "io/row_source.h"

namespace antisd::inline cli {
namespace {

// A user who types rows or waits for each answer pauses; a stream does not. So batches of a stream
// do not depend on timing.
constexpr int kPauseMilliseconds = 200;

constexpr std::size_t kMostWaiting = 4096;

bool pauses(std::istream& stream) {
  if (stream.rdbuf()->in_avail() != 0) return false;
  pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  return poll(&input, 1, kPauseMilliseconds) == 0;
}

// Rows without an answer yet, in order, with rows that became errors among them.
class PendingRows {
 public:
  PendingRows(const RowBatches& batches, JsonlWriter& writer)
      : batches_(batches), writer_(writer) {}

  void add(const Json& row) {
    const std::int64_t size = batches_.keep(row);
    // The new row is already kept; the rows before it form the batch.
    const bool full = total_size_ + size > batches_.limit || waiting_.size() >= kMostWaiting;
    if (kept_ > 0 && full) answer_all();
    waiting_.push_back({.row = row, .is_answer = false});
    ++kept_;
    total_size_ += size;
  }

  void add_answer(Json answer) {
    waiting_.push_back({.row = std::move(answer), .is_answer = true});
    if (kept_ == 0 || waiting_.size() >= kMostWaiting) answer_all();
  }

  void answer_all() {
    const std::vector<Json> results = kept_ > 0 ? batches_.work(kept_) : std::vector<Json>();
    auto next = results.begin();
    for (const Waiting& waiting : waiting_)
      writer_.write(waiting.is_answer ? waiting.row : with_id(waiting.row, *next++));
    writer_.flush();
    waiting_.clear();
    kept_ = 0;
    total_size_ = 0;
  }

  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    Json row;
    bool is_answer;
  };

  const RowBatches& batches_;
  JsonlWriter& writer_;
  std::vector<Waiting> waiting_;
  std::size_t kept_ = 0;
  std::int64_t total_size_ = 0;
};

}  // namespace

int run_row_batches(const RowStreamOptions& options, const RowBatches& batches) {
  const bool from_stdin = options.file == "-";
  // With its own buffer, std::cin reports how much has arrived.
  if (from_stdin) std::ios::sync_with_stdio(false);
  const auto reader = from_stdin ? std::make_unique<RowSource>(std::cin, "standard input")
                                 : std::make_unique<RowSource>(options.file);
  JsonlWriter writer(std::cout, "standard output");
  PendingRows pending(batches, writer);
  for (;;) {
    if (from_stdin && !pending.empty() && pauses(std::cin)) pending.answer_all();
    Json row;
    try {
      if (!reader->next(row)) break;
      pending.add(row);
    } catch (const InputError& error) {
      if (options.keep_going && !reader->is_broken()) {
        pending.add_answer(with_id(row, {{"error", error.message()}}));
        continue;
      }
      pending.answer_all();
      throw_placed(error, reader->where());
    }
  }
  pending.answer_all();
  return 0;
}

}  // namespace antisd::inline cli
