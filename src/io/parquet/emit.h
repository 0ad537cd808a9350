// Arrow arrays -> events of parquet_interface.h, one value at a time.
#pragma once

#include <arrow/api.h>

#include "io/parquet_interface.h"

namespace antisd::inline io::parquet_library {

// Whether emit() supports the type, including nested types; otherwise the reason.
arrow::Status check_supported(const arrow::DataType& type, const std::string& name, int depth = 1);

// Emits array[row]. `array` has a supported type.
void emit(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink);

}  // namespace antisd::inline io::parquet_library
