#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/atomic_file.h"
#include "io/parquet.h"
#include "io/parquet_library.h"

namespace antisd::inline io {
namespace {

bool is_exact_in_double(std::int64_t value) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 53;
  return value >= -kLimit && value <= kLimit;
}

// Arrow reads schemas of at most 100 levels, and a list takes up to three of them.
constexpr int kMaxColumnDepth = 30;

enum class Kind { kNull, kBoolean, kInteger, kNumber, kString, kList, kStruct };

// The common type of a column's values so far.
struct ColumnType {
  Kind kind = Kind::kNull;
  std::int64_t row = 0;                   // row that decided the kind, from 1, for messages
  bool exact_in_double = true;            // for integers: whether all are exact as numbers
  std::string name{};                     // in the struct that holds it
  std::vector<ColumnType> fields{};       // of a struct
  std::unique_ptr<ColumnType> element{};  // of a list

  ColumnType& field(const std::string& key);
};

ColumnType& ColumnType::field(const std::string& key) {
  const auto known = std::ranges::find(fields, key, &ColumnType::name);
  return known != fields.end() ? *known : fields.emplace_back(ColumnType{.name = key});
}

const char* name_of(Kind kind) {
  constexpr std::array kNames = {"null",   "boolean", "integer", "number",
                                 "string", "list",    "object"};
  return kNames[static_cast<std::size_t>(kind)];
}

class SchemaInference {
 public:
  explicit SchemaInference(std::string file) : file_(std::move(file)) {}

  void add_row(const Json& row) {
    ++row_;
    merge(row, root_, "", 0);
  }

  // Parquet has no struct without fields, and rows without columns could not be counted.
  void check_structs() const { check_structs(root_, ""); }
  const ColumnType& root() const { return root_; }

 private:
  Kind kind_of(const Json& value, const std::string& column) const {
    switch (value.type()) {
      case Json::value_t::boolean:
        return Kind::kBoolean;
      case Json::value_t::number_integer:
      case Json::value_t::number_unsigned:
        if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) {
          fail(column, fmt::format("row {} has {}, which does not fit a 64-bit integer", row_,
                                   value.get<std::uint64_t>()));
        }
        return Kind::kInteger;
      case Json::value_t::number_float:
        return Kind::kNumber;
      case Json::value_t::string:
        return Kind::kString;
      case Json::value_t::array:
        return Kind::kList;
      case Json::value_t::object:
        return Kind::kStruct;
      default:
        return Kind::kNull;
    }
  }

  void merge(const Json& value, ColumnType& type, const std::string& column, int depth) {
    const Kind kind = kind_of(value, column);
    if (kind == Kind::kNull) return;
    merge_kind(kind, type, column);
    if (depth > kMaxColumnDepth) {
      fail(column, fmt::format("row {} is nested deeper than {} levels", row_, kMaxColumnDepth));
    }
    if (kind == Kind::kString && find_invalid_utf8(value.get_ref<const std::string&>())) {
      fail(column, fmt::format("row {} has bytes that are not UTF-8 text", row_));
    }
    if (kind == Kind::kInteger && !is_exact_in_double(value.get<std::int64_t>())) {
      type.exact_in_double = false;
      if (type.kind == Kind::kNumber) fail_inexact(column);
    }
    if (kind == Kind::kList) {
      if (type.element == nullptr) type.element = std::make_unique<ColumnType>();
      for (const Json& element : value)
        merge(element, *type.element, column + "[]", depth + 1);
    } else if (kind == Kind::kStruct) {
      for (const auto& [key, child] : value.items())
        merge(child, type.field(key), column.empty() ? key : column + "." + key, depth + 1);
    }
  }

  void merge_kind(Kind kind, ColumnType& type, const std::string& column) {
    if (kind == type.kind) return;
    if (type.kind == Kind::kNull) {
      type.kind = kind;
      type.row = row_;
    } else if (type.kind == Kind::kInteger && kind == Kind::kNumber) {
      if (!type.exact_in_double) fail_inexact(column);
      type.kind = Kind::kNumber;
    } else if (!(type.kind == Kind::kNumber && kind == Kind::kInteger)) {
      fail(column, fmt::format("row {} has a value of type {} where row {} has one of type {}",
                               row_, name_of(kind), type.row, name_of(type.kind)));
    }
  }

  void check_structs(const ColumnType& type, const std::string& column) const {
    if (type.element != nullptr) check_structs(*type.element, column + "[]");
    if (type.kind != Kind::kStruct) return;
    if (type.fields.empty() && column.empty()) {
      throw InputError("rows without any key cannot be written as Parquet",
                       {.where = file_, .remedy = "write them as JSONL"});
    }
    if (type.fields.empty()) fail(column, "an object that is empty in every row");
    for (const ColumnType& field : type.fields)
      check_structs(field, column.empty() ? field.name : column + "." + field.name);
  }

  [[noreturn]] void fail_inexact(const std::string& column) const {
    fail(column, fmt::format("an integer beyond 2^53 and a fraction, up to row {}", row_));
  }

  [[noreturn]] void fail(const std::string& column, const std::string& what) const {
    throw InputError(fmt::format("column {} cannot be written as Parquet: {}", column, what),
                     {.where = file_, .remedy = "give the column one type, or write JSONL"});
  }

  std::string file_;
  ColumnType root_{.kind = Kind::kStruct};
  std::int64_t row_ = 0;
};

// Sends `value` in the structure of `type`, which the library expects; null is allowed anywhere.
void send(const Json* value, const ColumnType& type, const AntisdValueSink& sink) {
  if (value == nullptr || value->is_null()) return sink.null_value(sink.context);
  switch (type.kind) {
    case Kind::kBoolean:
      return sink.boolean(sink.context, value->get<bool>());
    case Kind::kInteger:
      return sink.integer(sink.context, value->get<std::int64_t>());
    case Kind::kNumber:
      return sink.number(sink.context, value->get<double>());
    case Kind::kString: {
      const auto& text = value->get_ref<const std::string&>();
      return sink.string(sink.context, text.data(), text.size());
    }
    case Kind::kList:
      sink.begin_list(sink.context);
      for (const Json& element : *value)
        send(&element, *type.element, sink);
      return sink.end_list(sink.context);
    case Kind::kStruct:
      sink.begin_struct(sink.context);
      for (const ColumnType& field : type.fields) {
        const auto found = value->find(field.name);
        sink.key(sink.context, field.name.data(), field.name.size());
        send(found == value->end() ? nullptr : &*found, field, sink);
      }
      return sink.end_struct(sink.context);
    case Kind::kNull:
      return sink.null_value(sink.context);
  }
}

// An example value of the type, from which the library derives the schema.
Json example_of(const ColumnType& type) {
  switch (type.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kBoolean:
      return false;
    case Kind::kInteger:
      return 0;
    case Kind::kNumber:
      return 0.0;
    case Kind::kString:
      return "";
    case Kind::kList:
      return Json::array({example_of(*type.element)});
    case Kind::kStruct:
      break;
  }
  Json example = Json::object();
  for (const ColumnType& field : type.fields)
    example[field.name] = example_of(field);
  return example;
}

void write_rows(const std::vector<Json>& rows, const ColumnType& type, AtomicFile& file) {
  const std::string name = file.path().string();
  const AntisdParquetLibrary& library = load_parquet_library(name);
  std::array<char, kAntisdProblemBytes> problem{};
  const auto check = [&](bool good) {
    if (!good) {
      throw RunError(fmt::format("cannot be written: {}", problem.data()),
                     {.where = name, .remedy = "check the space left on the disk"});
    }
  };
  const std::unique_ptr<AntisdParquetWriter, void (*)(AntisdParquetWriter*)> writer(
      library.open_writer(file.descriptor(), problem.data()), library.close_writer);
  check(writer != nullptr);
  const AntisdValueSink& sink = *library.sink(writer.get());
  const auto send_row = [&](const Json& row) {
    send(&row, type, sink);
    check(library.end_row(writer.get(), problem.data()) == 0);
  };
  send_row(example_of(type));
  for (const Json& row : rows)
    send_row(row);
  check(library.finish(writer.get(), problem.data()) == 0);
}

}  // namespace

void write_parquet(const std::filesystem::path& path, const std::function<bool(Json&)>& next_row) {
  SchemaInference schema(path.string());
  std::vector<Json> rows;
  for (Json row; next_row(row);) {
    if (!row.is_object()) {
      throw InputError(fmt::format("row {} is not a JSON object", rows.size() + 1),
                       {.where = path.string(), .remedy = "write one object per row"});
    }
    schema.add_row(row);
    rows.push_back(std::move(row));
    row = Json();
  }
  if (!rows.empty()) schema.check_structs();
  AtomicFile file(path);
  write_rows(rows, schema.root(), file);
  file.commit();
}

}  // namespace antisd::inline io
