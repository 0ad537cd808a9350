#include "io/parquet/emit.h"

#include <arrow/util/decimal.h>
#include <arrow/util/float16.h>

#include "io/parquet/times.h"

namespace antisd::inline io::parquet_library {
namespace {

constexpr int kMaxDepth = 200;  // of nested types: emit() recurses that deep

void emit_text(std::string_view text, const AntisdValueSink& sink) {
  sink.string(sink.context, text.data(), text.size());
}

template <typename Array>
std::string_view view(const arrow::Array& array, std::int64_t row) {
  return static_cast<const Array&>(array).GetView(row);
}

template <typename Array>
void emit_integer(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink) {
  sink.integer(sink.context, static_cast<const Array&>(array).Value(row));
}

template <typename Array>
void emit_number(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink) {
  sink.number(sink.context, static_cast<const Array&>(array).Value(row));
}

template <typename Array>
void emit_list(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink) {
  const auto& list = static_cast<const Array&>(array);
  const arrow::Array& values = *list.values();
  const std::int64_t begin = list.value_offset(row);
  const std::int64_t end = begin + list.value_length(row);
  sink.begin_list(sink.context);
  for (std::int64_t i = begin; i < end; ++i)
    emit(values, i, sink);
  sink.end_list(sink.context);
}

void emit_struct(const arrow::StructArray& array, std::int64_t row, const AntisdValueSink& sink) {
  const auto& type = static_cast<const arrow::StructType&>(*array.type());
  sink.begin_struct(sink.context);
  for (int i = 0; i < array.num_fields(); ++i) {
    const std::string& name = type.field(i)->name();
    sink.key(sink.context, name.data(), name.size());
    emit(*array.field(i), row, sink);  // field() applies the struct's own offset
  }
  sink.end_struct(sink.context);
}

// Keys that JSON supports; other maps become lists of [key, value].
bool has_json_keys(const arrow::DataType& keys) {
  return arrow::is_base_binary_like(keys.id()) || arrow::is_integer(keys.id());
}

void emit_key(const arrow::Array& keys, std::int64_t i, const AntisdValueSink& sink) {
  std::string number;
  std::string_view text;
  switch (keys.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      text = view<arrow::BinaryArray>(keys, i);
      break;
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      text = view<arrow::LargeBinaryArray>(keys, i);
      break;
    default: {
      const auto scalar = keys.GetScalar(i);
      if (scalar.ok()) number = (*scalar)->ToString();
      text = number;
    }
  }
  sink.key(sink.context, text.data(), text.size());
}

void emit_map(const arrow::MapArray& array, std::int64_t row, const AntisdValueSink& sink) {
  const arrow::Array& keys = *array.keys();
  const arrow::Array& items = *array.items();
  const std::int64_t begin = array.value_offset(row);
  const std::int64_t end = begin + array.value_length(row);
  const bool as_struct = has_json_keys(*keys.type());
  as_struct ? sink.begin_struct(sink.context) : sink.begin_list(sink.context);
  for (std::int64_t i = begin; i < end; ++i) {
    if (as_struct) {
      emit_key(keys, i, sink);
      emit(items, i, sink);
    } else {
      sink.begin_list(sink.context);
      emit(keys, i, sink);
      emit(items, i, sink);
      sink.end_list(sink.context);
    }
  }
  as_struct ? sink.end_struct(sink.context) : sink.end_list(sink.context);
}

template <typename Array, typename Decimal>
void emit_decimal(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink) {
  const auto& type = static_cast<const arrow::DecimalType&>(*array.type());
  const Decimal value(static_cast<const Array&>(array).GetValue(row));
  emit_text(value.ToString(type.scale()), sink);
}

}  // namespace

arrow::Status check_supported(const arrow::DataType& type, const std::string& name, int depth) {
  if (depth > kMaxDepth) {
    return arrow::Status::Invalid("column ", name, " is nested deeper than ", kMaxDepth, " levels");
  }
  switch (type.id()) {
    case arrow::Type::EXTENSION:
      return check_supported(*static_cast<const arrow::ExtensionType&>(type).storage_type(), name,
                             depth + 1);
    case arrow::Type::DICTIONARY:
      return check_supported(*static_cast<const arrow::DictionaryType&>(type).value_type(), name,
                             depth + 1);
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::STRUCT:
    case arrow::Type::MAP:
      for (const auto& field : type.fields())
        ARROW_RETURN_NOT_OK(check_supported(*field->type(), name + "." + field->name(), depth + 1));
      return arrow::Status::OK();
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
    case arrow::Type::SPARSE_UNION:
    case arrow::Type::DENSE_UNION:
    case arrow::Type::RUN_END_ENCODED:
    case arrow::Type::INTERVAL_MONTHS:
    case arrow::Type::INTERVAL_DAY_TIME:
    case arrow::Type::INTERVAL_MONTH_DAY_NANO:
    case arrow::Type::MAX_ID:
      return arrow::Status::NotImplemented("column ", name, " is of type ", type.ToString(),
                                           ", which has no form in JSON");
    default:
      return arrow::Status::OK();
  }
}

void emit(const arrow::Array& array, std::int64_t row, const AntisdValueSink& sink) {
  using arrow::Type;
  if (array.IsNull(row)) return sink.null_value(sink.context);
  switch (array.type_id()) {
    case Type::BOOL:
      return sink.boolean(sink.context, static_cast<const arrow::BooleanArray&>(array).Value(row));
    case Type::INT8:
      return emit_integer<arrow::Int8Array>(array, row, sink);
    case Type::INT16:
      return emit_integer<arrow::Int16Array>(array, row, sink);
    case Type::INT32:
      return emit_integer<arrow::Int32Array>(array, row, sink);
    case Type::INT64:
      return emit_integer<arrow::Int64Array>(array, row, sink);
    case Type::UINT8:
      return emit_integer<arrow::UInt8Array>(array, row, sink);
    case Type::UINT16:
      return emit_integer<arrow::UInt16Array>(array, row, sink);
    case Type::UINT32:
      return emit_integer<arrow::UInt32Array>(array, row, sink);
    case Type::UINT64:
      return sink.unsigned_integer(sink.context,
                                   static_cast<const arrow::UInt64Array&>(array).Value(row));
    case Type::DURATION:
      return emit_integer<arrow::DurationArray>(array, row, sink);
    case Type::HALF_FLOAT:
      return sink.number(sink.context,
                         arrow::util::Float16::FromBits(
                             static_cast<const arrow::HalfFloatArray&>(array).Value(row))
                             .ToDouble());
    case Type::FLOAT:
      return emit_number<arrow::FloatArray>(array, row, sink);
    case Type::DOUBLE:
      return emit_number<arrow::DoubleArray>(array, row, sink);
    case Type::STRING:
    case Type::BINARY:
      return emit_text(view<arrow::BinaryArray>(array, row), sink);
    case Type::LARGE_STRING:
    case Type::LARGE_BINARY:
      return emit_text(view<arrow::LargeBinaryArray>(array, row), sink);
    case Type::STRING_VIEW:
    case Type::BINARY_VIEW:
      return emit_text(view<arrow::BinaryViewArray>(array, row), sink);
    case Type::FIXED_SIZE_BINARY:
      return emit_text(view<arrow::FixedSizeBinaryArray>(array, row), sink);
    case Type::DECIMAL32:
      return emit_decimal<arrow::Decimal32Array, arrow::Decimal32>(array, row, sink);
    case Type::DECIMAL64:
      return emit_decimal<arrow::Decimal64Array, arrow::Decimal64>(array, row, sink);
    case Type::DECIMAL128:
      return emit_decimal<arrow::Decimal128Array, arrow::Decimal128>(array, row, sink);
    case Type::DECIMAL256:
      return emit_decimal<arrow::Decimal256Array, arrow::Decimal256>(array, row, sink);
    case Type::DATE32:
    case Type::DATE64:
    case Type::TIME32:
    case Type::TIME64:
    case Type::TIMESTAMP:
      return emit_text(iso_8601(array, row), sink);
    case Type::LIST:
      return emit_list<arrow::ListArray>(array, row, sink);
    case Type::LARGE_LIST:
      return emit_list<arrow::LargeListArray>(array, row, sink);
    case Type::FIXED_SIZE_LIST:
      return emit_list<arrow::FixedSizeListArray>(array, row, sink);
    case Type::STRUCT:
      return emit_struct(static_cast<const arrow::StructArray&>(array), row, sink);
    case Type::MAP:
      return emit_map(static_cast<const arrow::MapArray&>(array), row, sink);
    case Type::DICTIONARY: {
      const auto& dictionary = static_cast<const arrow::DictionaryArray&>(array);
      return emit(*dictionary.dictionary(), dictionary.GetValueIndex(row), sink);
    }
    case Type::EXTENSION:
      return emit(*static_cast<const arrow::ExtensionArray&>(array).storage(), row, sink);
    default:
      return sink.null_value(sink.context);  // Type::NA; check_supported() rejected all others
  }
}

}  // namespace antisd::inline io::parquet_library
