// The small tools' common shape: a stream of JSON rows in, one row out for each, in the same order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "io/json.h"

namespace antisd {

struct RowStreamOptions {
  std::string file = "-";  // "-" is standard input
  bool keep_going = false;
};

// Adds FILE and --keep-going.
void add_row_stream_options(CLI::App& app, RowStreamOptions& options);

// Writes work(row) for every row, with the row's id carried through. A bad row stops with
// "FILE:LINE: ..." after the rows before it are out; with keep_going it becomes
// {"id":..,"error":".."}.
// With several workers, rows are worked on at the same time and still come out in order.
int run_rows(const RowStreamOptions& options, const std::function<Json(const Json& row)>& work,
             int workers = 1);

// Fields of a row, with errors that name the field and what is wrong with it.
const Json& required_field(const Json& row, const std::string& name);
const std::string& required_string(const Json& row, const std::string& name);
std::vector<std::int32_t> ids_of(const Json& row, const std::string& name);  // token ids, from 0 up

}  // namespace antisd
