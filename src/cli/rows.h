// Common to the small tools: a stream of JSON rows in, one row out per row, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/error.h"
#include "io/json.h"

namespace antisd::inline cli {

struct RowStreamOptions {
  std::string file = "-";  // "-" is standard input
  bool keep_going = false;
};

// Adds FILE and --keep-going.
void add_row_stream_options(CLI::App& app, RowStreamOptions& options);

// Writes work(row) for every row and carries the row's id through. A bad row stops the command with
// "FILE:LINE: ..." after the rows before it are written; with keep_going it becomes
// {"id":..,"error":".."}. With several workers, rows are processed in parallel and still come out
// in order.
int run_rows(const RowStreamOptions& options, const std::function<Json(const Json& row)>& work,
             int workers = 1);

// Work that processes many rows at once.
struct RowBatches {
  // Keeps the row's request and returns its size. An InputError rejects the row: it is not kept.
  std::function<std::int64_t(const Json& row)> keep;
  // Results of the `count` oldest rows kept, in order, and forgets those rows.
  std::function<std::vector<Json>(std::size_t count)> work;
  std::int64_t limit = 0;  // on the total size of a batch; a larger row is a batch by itself
};

// Same contract as run_rows. Rows that arrive slowly through a pipe are answered when it pauses.
int run_row_batches(const RowStreamOptions& options, const RowBatches& batches);

// `result` with the row's id first, if it has one.
Json with_id(const Json& row, Json result);
// Rethrows the row's error with its place.
[[noreturn]] void throw_placed(const InputError& error, const std::string& where);

// Fields of a row; errors name the field and what is wrong with it.
const Json& required_field(const Json& row, const std::string& name);
const std::string& required_string(const Json& row, const std::string& name);
std::vector<std::int32_t> ids_of(const Json& row, const std::string& name);  // token ids, >= 0

}  // namespace antisd::inline cli
