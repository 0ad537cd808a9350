// Arrow arrays -> events of parquet_interface.h, one value at a time.
#pragma once

#include <arrow/api.h>

#include "io/parquet_interface.h"

namespace antisd::inline io::parquet_library {

// Whether emit() can send values of the type; nested types are looked into. The reason otherwise.
arrow::Status check_supported(const arrow::DataType& type, const std::string& name, int depth = 1);

// Sends array[row]. `array` is of a supported type.
void emit(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink);

}  // namespace antisd::inline io::parquet_library
