// The values of templates: Python's None, bool, int (64 bits), float, str, list, tuple, dict and
// Jinja's undefined, plus objects with their own attributes or calls (macros, loops). Lists, dicts
// and strings are immutable, so they are shared, never copied; they count against the memory of the
// render that made them. Strings are UTF-8.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "io/json.h"

namespace antisd::inline text::jinja {

// An error that stops a template. ChatTemplate turns it into an InputError with the template's name
// and line.
struct Failure {
  std::string problem;
  std::string remedy;
  int line = 0;  // 0: the line being rendered
};

// The bytes held by live values of one render.
class Heap {
 public:
  explicit Heap(std::size_t limit) : limit_(limit) {}
  void take(std::size_t bytes);
  void give(std::size_t bytes) { live_ -= bytes; }

 private:
  std::size_t limit_;
  std::size_t live_ = 0;
};

// A value's share of the heap, returned by its destructor. A template's constants have none.
class Charge {
 public:
  Charge() = default;
  Charge(Heap* heap, std::size_t bytes) : heap_(heap), bytes_(bytes) { heap_->take(bytes_); }
  ~Charge() {
    if (heap_ != nullptr) heap_->give(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  void grow(std::size_t bytes) {
    if (heap_ == nullptr) return;
    heap_->take(bytes);
    bytes_ += bytes;
  }

 private:
  Heap* heap_ = nullptr;
  std::size_t bytes_ = 0;
};

class Runtime;
class Object;
struct Text;
struct List;
struct Dict;
struct Undefined;

struct None {};

class Value {
 public:
  Value() = default;
  explicit Value(std::shared_ptr<const Text> text) : data_(std::move(text)) {}
  explicit Value(std::shared_ptr<const List> list) : data_(std::move(list)) {}
  explicit Value(std::shared_ptr<const Dict> dict) : data_(std::move(dict)) {}
  explicit Value(std::shared_ptr<Object> object) : data_(std::move(object)) {}
  explicit Value(std::shared_ptr<const Undefined> undefined) : data_(std::move(undefined)) {}
  static Value boolean(bool value) { return Value(Data(value)); }
  static Value integer(std::int64_t value) { return Value(Data(value)); }
  static Value real(double value) { return Value(Data(value)); }
  static Value constant(std::string text);  // part of the template itself, outside any heap

  bool is_none() const { return std::holds_alternative<None>(data_); }
  bool is_bool() const { return std::holds_alternative<bool>(data_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(data_); }
  bool is_float() const { return std::holds_alternative<double>(data_); }
  bool is_number() const { return is_bool() || is_int() || is_float(); }
  bool is_integral() const { return is_bool() || is_int(); }  // Python's isinstance(_, int)
  bool is_text() const { return std::holds_alternative<std::shared_ptr<const Text>>(data_); }
  bool is_list() const { return std::holds_alternative<std::shared_ptr<const List>>(data_); }
  bool is_dict() const { return std::holds_alternative<std::shared_ptr<const Dict>>(data_); }
  bool is_object() const { return std::holds_alternative<std::shared_ptr<Object>>(data_); }
  bool is_undefined() const {
    return std::holds_alternative<std::shared_ptr<const Undefined>>(data_);
  }

  bool as_bool() const { return std::get<bool>(data_); }
  std::int64_t as_int() const;  // for an int or a bool
  double as_double() const;     // for any number
  const std::string& text() const;
  const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object& object() const { return *std::get<std::shared_ptr<Object>>(data_); }
  const Undefined& undefined() const { return *std::get<std::shared_ptr<const Undefined>>(data_); }
  const std::shared_ptr<const List>& list_pointer() const {
    return std::get<std::shared_ptr<const List>>(data_);
  }

  int depth() const;              // levels of containers below and including this value
  const void* identity() const;   // the shared object's address; null for scalars
  std::string type_name() const;  // as Python names it: "str", "NoneType"

 private:
  using Data = std::variant<None, bool, std::int64_t, double, std::shared_ptr<const Text>,
                            std::shared_ptr<const List>, std::shared_ptr<const Dict>,
                            std::shared_ptr<Object>, std::shared_ptr<const Undefined>>;
  explicit Value(Data data) : data_(std::move(data)) {}
  Data data_;
};

struct Text {
  explicit Text(std::string text) : bytes(std::move(text)) {}
  Text(std::string text, Heap& heap)
      : bytes(std::move(text)), charge(&heap, sizeof(Text) + bytes.size()) {}
  const std::string bytes;
  Charge charge;
};

// Every sequence that is not a string. Python's lazy ones are evaluated at once; a generator
// records how far it was read, since it can be read only once.
struct List {
  enum class Kind { kList, kTuple, kGroup, kRange, kGenerator, kKeys, kValues, kItems };
  List(std::vector<Value> values, Kind sort, std::string name, Heap& heap);
  const std::vector<Value> items;
  const Kind kind;
  const std::string label;  // how a range or generator prints
  int depth = 1;
  mutable std::size_t read = 0;  // only for generators
  Charge charge;

  bool is_tuple() const { return kind == Kind::kTuple || kind == Kind::kGroup; }
};

// Ordered like Python's. An index is added once linear search would be slow.
struct Dict {
  using Entry = std::pair<Value, Value>;
  explicit Dict(Heap& heap) : charge(&heap, sizeof(Dict)) {}
  std::vector<Entry> entries;
  int depth = 1;
  Charge charge;

  const Value* find(Runtime& runtime, const Value& key) const;
  const Value* find(Runtime& runtime, std::string_view key) const;
  void set(Runtime& runtime, Value key, Value value);

 private:
  template <typename Equal>
  std::size_t position(std::size_t hash, Equal&& equal) const;
  std::unordered_multimap<std::size_t, std::size_t> index_;  // hash -> entry
};

// Prints as nothing, iterates as nothing, is false; anything else fails with why().
struct Undefined {
  explicit Undefined(Heap& heap) : charge(&heap, sizeof(Undefined)) {}
  std::string hint;   // the complete message, or empty
  std::string owner;  // type of the value that lacks `name`; empty for a variable
  std::string name;
  bool element = false;  // a subscript that is not a string
  bool unsafe = false;   // a method that would change its value
  Charge charge;

  std::string why() const;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual bool callable() const { return true; }
  virtual Value call(Runtime& runtime, Arguments& arguments);
  // Whether there is such an attribute; stores it in `value`.
  virtual bool attribute(Runtime& runtime, const std::string& name, Value& value);
  // Releases all values it holds: the render calls it at its end on all adopted objects, so that
  // neither cycles nor long chains outlive it or recurse when destroyed.
  virtual void release() {}
};

inline constexpr int kMaxValueDepth = 256;

Value from_json(Runtime& runtime, const Json& json, int depth = 0);

}  // namespace antisd::inline text::jinja
