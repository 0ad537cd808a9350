// Dates, times and timestamps as ISO 8601 text, with as many digits of a second as the type has.
#pragma once

#include <string>

#include <arrow/api.h>

namespace antisd::inline io::parquet_library {

// array[row] of a date, time or timestamp type. A timestamp with a time zone is given in UTC ("Z").
std::string iso_8601(const arrow::Array& array, std::int64_t row);

}  // namespace antisd::inline io::parquet_library
