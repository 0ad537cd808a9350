#include "io/parquet.h"

#include <array>
#include <fstream>

#include <fmt/format.h>

#include "core/error.h"
#include "core/utf8.h"
#include "io/parquet_library.h"
#include "io/regular_file.h"

namespace antisd::inline io {
namespace {

// Builds Json from the events of one row. Events must not throw, so an error is kept in `problem`.
class RowBuilder {
 public:
  RowBuilder() { stack_.reserve(16); }

  void start(Json& row) {
    row = nullptr;
    row_ = &row;
    stack_.clear();
    problem_.clear();
  }
  const std::string& problem() const { return problem_; }
  AntisdValueSink sink();

 private:
  static RowBuilder& of(void* context) { return *static_cast<RowBuilder*>(context); }

  // Where the next value goes: the row, the end of a list, or the last key.
  Json& target() {
    if (stack_.empty()) return *row_;
    Json& top = *stack_.back();
    if (top.is_array()) return top.get_ref<Json::array_t&>().emplace_back();
    return top.get_ref<Json::object_t&>().back().second;
  }

  void begin(Json::value_t kind) {
    Json& value = target();
    value = kind;
    stack_.push_back(&value);
  }

  void add_key(std::string_view text) {
    auto& object = stack_.back()->get_ref<Json::object_t&>();
    check_text(text);
    if (object.size() >= kMaxOrderedKeys) {
      fail(fmt::format("more than {} keys in one value", kMaxOrderedKeys));
    } else if (!object.emplace(std::string(text), nullptr).second) {
      fail(fmt::format("the name \"{}\" appears twice", text));
    }
  }

  void check_text(std::string_view text) {
    if (find_invalid_utf8(text)) fail("bytes that are not UTF-8 text");
  }

  void fail(const std::string& what) {
    if (problem_.empty()) problem_ = fmt::format("column {}: {}", column(), what);
  }

  // "prompt[0].content", from the open containers.
  std::string column() const {
    std::string path;
    for (const Json* open : stack_) {
      if (open->is_array()) {
        path += fmt::format("[{}]", std::max<std::size_t>(open->size(), 1) - 1);
      } else if (!open->empty()) {
        if (!path.empty()) path += '.';
        path += replace_invalid_utf8(open->get_ref<const Json::object_t&>().back().first);
      }
    }
    return path;
  }

  Json* row_ = nullptr;
  std::vector<Json*> stack_;
  std::string problem_;
};

AntisdValueSink RowBuilder::sink() {
  return {
      .context = this,
      .null_value = [](void* c) { of(c).target() = nullptr; },
      .boolean = [](void* c, int value) { of(c).target() = value != 0; },
      .integer = [](void* c, std::int64_t value) { of(c).target() = value; },
      .unsigned_integer = [](void* c, std::uint64_t value) { of(c).target() = value; },
      .number = [](void* c, double value) { of(c).target() = value; },
      .string =
          [](void* c, const char* text, std::size_t size) {
            Json& target = of(c).target();
            of(c).check_text({text, size});
            target = std::string(text, size);
          },
      .begin_list = [](void* c) { of(c).begin(Json::value_t::array); },
      .end_list = [](void* c) { of(c).stack_.pop_back(); },
      .begin_struct = [](void* c) { of(c).begin(Json::value_t::object); },
      .key =
          [](void* c, const char* text, std::size_t size) {
            of(c).add_key({text, size});
          },
      .end_struct = [](void* c) { of(c).stack_.pop_back(); },
  };
}

struct CloseReader {
  const AntisdParquetLibrary* library;
  void operator()(AntisdParquetReader* reader) const { library->close_reader(reader); }
};

constexpr const char* kBrokenRemedy = "fetch or write the file again";

}  // namespace

struct ParquetReader::State {
  std::string name;
  const AntisdParquetLibrary* library;
  std::unique_ptr<AntisdParquetReader, CloseReader> reader;
  std::int64_t row = 0;
  bool at_end = false;
  RowBuilder builder;
};

ParquetReader::ParquetReader(const std::filesystem::path& path) : state_(new State) {
  // Gives our own message: Arrow's are long.
  open_regular_file(path);
  State& state = *state_;
  state.name = path.string();
  state.library = &load_parquet_library(state.name);
  std::array<char, kAntisdProblemBytes> problem{};
  state.reader = {state.library->open_reader(state.name.c_str(), problem.data()),
                  CloseReader{state.library}};
  if (state.reader == nullptr) {
    throw InputError(fmt::format("not a readable Parquet file: {}", problem.data()),
                     {.where = state.name, .remedy = kBrokenRemedy});
  }
}

ParquetReader::~ParquetReader() = default;
ParquetReader::ParquetReader(ParquetReader&&) noexcept = default;
ParquetReader& ParquetReader::operator=(ParquetReader&&) noexcept = default;

std::int64_t ParquetReader::row_count() const {
  return state_->library->row_count(state_->reader.get());
}

std::string ParquetReader::where() const {
  return fmt::format("{}:row {}", state_->name, state_->row);
}

bool ParquetReader::next(Json& row) {
  State& state = *state_;
  if (state.at_end) return false;
  state.builder.start(row);
  const AntisdValueSink sink = state.builder.sink();
  std::array<char, kAntisdProblemBytes> problem{};
  const int result = state.library->next_row(state.reader.get(), &sink, problem.data());
  if (result == 0) {
    state.at_end = true;
    return false;
  }
  ++state.row;
  if (result < 0) {
    state.at_end = true;
    throw InputError(fmt::format("the file is broken: {}", problem.data()),
                     {.where = where(), .remedy = kBrokenRemedy});
  }
  if (!state.builder.problem().empty()) {
    throw InputError(state.builder.problem(),
                     {.where = where(), .remedy = "remove or convert the value"});
  }
  return true;
}

bool is_parquet(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension == ".parquet" || extension == ".pq") return true;
  // Opening a pipe would consume bytes that its reader needs.
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "PAR1";
}

}  // namespace antisd::inline io
