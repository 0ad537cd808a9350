#include "cli/rows.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <iostream>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/start_thread.h"
#include "core/thread_pool.h"
#include "io/jsonl.h"
#include "io/row_source.h"

namespace antisd::inline cli {

Json with_id(const Json& row, Json result) {
  const auto id = row.find("id");
  if (id == row.end()) return result;
  Json out = {{"id", *id}};
  out.update(result);
  return out;
}

void throw_placed(const InputError& error, const std::string& where) {
  if (error.message().starts_with(where)) throw error;
  throw InputError(error.message(), {.where = where});
}

void add_row_stream_options(CLI::App& app, RowStreamOptions& options) {
  app.add_option("FILE", options.file,
                 "rows: a .jsonl or .csv file, plain or .gz; - is JSONL on standard input")
      ->capture_default_str();
  app.add_flag("--keep-going", options.keep_going,
               "write a bad row as {\"id\",\"error\"} and continue");
}

namespace {

// Rows in progress: read by one thread, processed by several, written by one in the order they were
// read.
class RowPipeline {
 public:
  RowPipeline(const RowStreamOptions& options, const std::function<Json(const Json&)>& work,
              int workers)
      : options_(options),
        work_(work),
        workers_(workers),
        open_(static_cast<std::size_t>(workers) * 4) {}

  void run(RowSource& reader, JsonlWriter& writer) {
    std::thread writing = start_thread([&] { write_in_order(writer); });
    std::exception_ptr read_error;  // of the row after all rows that were read
    try {
      pool_.emplace(workers_);  // after the writer, which the workers need
      while (read_one(reader)) {
      }
    } catch (...) {
      read_error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    writing.join();
    if (error_) std::rethrow_exception(error_);
    if (read_error) std::rethrow_exception(read_error);
  }

 private:
  // False at the end or after a row has failed. Throws if no row can be read.
  bool read_one(RowSource& reader) {
    std::future<Json> result;
    try {
      Json row;
      if (!reader.next(row)) return false;
      result = pool_->submit([this, row = std::move(row), where = reader.where()] {
        return answer(options_, work_, row, where);
      });
    } catch (const InputError& error) {
      if (!options_.keep_going || reader.is_broken()) throw;
      std::promise<Json> promise;
      promise.set_value({{"error", error.message()}});
      result = promise.get_future();
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_.size() < open_ || failed_; });
    results_.push_back(std::move(result));
    changed_.notify_all();
    return !failed_;
  }

  void write_in_order(JsonlWriter& writer) {
    for (;;) {
      std::future<Json> next;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || !results_.empty(); });
        if (results_.empty()) return;
        next = std::move(results_.front());
        results_.pop_front();
        changed_.notify_all();
      }
      if (failed_) continue;
      try {
        writer.write(next.get());
        writer.flush();
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
        failed_ = true;
        changed_.notify_all();
      }
    }
  }

 public:
  // The output row, or its error as a row, or the error with its place.
  static Json answer(const RowStreamOptions& options, const std::function<Json(const Json&)>& work,
                     const Json& row, const std::string& where) {
    try {
      return with_id(row, work(row));
    } catch (const InputError& error) {
      if (options.keep_going) return with_id(row, {{"error", error.message()}});
      throw_placed(error, where);
    }
  }

 private:
  const RowStreamOptions& options_;
  const std::function<Json(const Json&)>& work_;
  const int workers_;
  const std::size_t open_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::future<Json>> results_;
  bool ended_ = false;
  std::atomic<bool> failed_ = false;
  std::exception_ptr error_;
  std::optional<ThreadPool> pool_;
};

}  // namespace

int run_rows(const RowStreamOptions& options, const std::function<Json(const Json& row)>& work,
             int workers) {
  const bool from_stdin = options.file == "-";
  const auto reader = from_stdin ? std::make_unique<RowSource>(std::cin, "standard input")
                                 : std::make_unique<RowSource>(options.file);
  JsonlWriter writer(std::cout, "standard output");
  if (workers > 1) {
    RowPipeline(options, work, workers).run(*reader, writer);
    return 0;
  }
  for (;;) {
    Json row;
    try {
      if (!reader->next(row)) break;
    } catch (const InputError& error) {
      if (!options.keep_going || reader->is_broken()) {
        writer.flush();
        throw;
      }
      writer.write({{"error", error.message()}});
      continue;
    }
    try {
      writer.write(RowPipeline::answer(options, work, row, reader->where()));
    } catch (const InputError&) {
      writer.flush();
      throw;
    }
    // A user or program on the other end of a pipe waits for each answer.
    if (from_stdin) writer.flush();
  }
  writer.flush();
  return 0;
}

const Json& required_field(const Json& row, const std::string& name) {
  const auto field = row.find(name);
  if (field != row.end()) return *field;
  std::vector<std::string> present;
  for (const auto& [key, _] : row.items())
    present.push_back("'" + key + "'");
  throw InputError(
      fmt::format("the row has no '{}'", name),
      {.remedy = present.empty() ? "the row is empty"
                                 : fmt::format("it has {}", fmt::join(present, ", "))});
}

const std::string& required_string(const Json& row, const std::string& name) {
  const Json& field = required_field(row, name);
  if (!field.is_string()) {
    throw InputError(fmt::format("'{}' is {}", name, field.type_name()),
                     {.remedy = "give a string"});
  }
  return field.get_ref<const std::string&>();
}

std::vector<std::int32_t> ids_of(const Json& row, const std::string& name) {
  const Json& field = required_field(row, name);
  if (!field.is_array()) {
    throw InputError(fmt::format("'{}' is {}", name, field.type_name()),
                     {.remedy = "give a list of integers"});
  }
  std::vector<std::int32_t> ids;
  ids.reserve(field.size());
  for (const Json& id : field) {
    if (!id.is_number_integer() || id < 0 || id > std::numeric_limits<std::int32_t>::max()) {
      throw InputError(fmt::format("'{}' holds {} at position {}", name, id.dump(), ids.size()),
                       {.remedy = "ids are integers, at least 0"});
    }
    ids.push_back(id.get<std::int32_t>());
  }
  return ids;
}

}  // namespace antisd::inline cli
