#include "report/sweep/grid.h"

#include <cctype>
#include <charconv>
#include <set>

#include <fmt/format.h>

#include "core/error.h"

namespace antisd::inline report {
namespace {

constexpr std::string_view kSeedKey = "train.seed";
constexpr std::string_view kMethodKey = "method.name";
constexpr std::int64_t kMaxSeeds = 1000;

// Splits at commas outside brackets and quotes.
std::vector<std::string> split_values(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = 0;
  for (const char c : text) {
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (c == ']' || c == '}') {
      --depth;
    }
    if (c == ',' && depth == 0 && quote == 0) {
      values.emplace_back();
    } else {
      values.back() += c;
    }
  }
  return values;
}

std::int64_t to_seed(std::string_view text, std::string_view whole) {
  std::int64_t seed = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size() && seed >= 0) return seed;
  throw InputError(fmt::format("'{}' is neither a seed nor a range of seeds", whole),
                   {.where = std::string(kSeedKey), .remedy = "write 0-4 or 0,1,7"});
}

std::vector<std::string> expand_seeds(const std::vector<std::string>& parts) {
  std::vector<std::string> seeds;
  for (const std::string& part : parts) {
    const std::size_t dash = part.find('-');
    const std::int64_t first = to_seed(std::string_view(part).substr(0, dash), part);
    const std::int64_t last =
        dash == std::string::npos ? first : to_seed(std::string_view(part).substr(dash + 1), part);
    if (last < first || last - first >= kMaxSeeds) to_seed("", part);
    for (std::int64_t seed = first; seed <= last; ++seed)
      seeds.push_back(std::to_string(seed));
  }
  return seeds;
}

// A value as part of a file name; other characters become '_'.
std::string safe(std::string_view value) {
  std::string name;
  for (const char c : value) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' ||
                       c == '-' || c == '+';
    if (plain) {
      name += c;
    } else if (!name.empty() && name.back() != '_') {
      name += '_';
    }
  }
  while (name.size() > 1 && name.back() == '_')
    name.pop_back();
  return name.substr(0, 60);
}

std::string last_part(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  return dot == std::string::npos ? key : key.substr(dot + 1);
}

std::string label(const GridAxis& axis, const std::string& value) {
  const std::string part = safe(value), name = safe(last_part(axis.key));
  if (axis.key == kMethodKey) return part;
  const bool is_number = !part.empty() && std::isdigit(static_cast<unsigned char>(part[0])) != 0;
  return name + (is_number ? "" : "_") + part;
}

}  // namespace

void Grid::add_assignment(std::string_view key_and_values) {
  const std::size_t equals = key_and_values.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw InputError("not of the form key=v1,v2", {.where = fmt::format("'{}'", key_and_values),
                                                   .remedy = "write e.g. optim.lr=1e-6,3e-6"});
  }
  add(std::string(key_and_values.substr(0, equals)), key_and_values.substr(equals + 1));
}

void Grid::add(std::string key, std::string_view text) {
  std::vector<std::string> values = split_values(text);
  if (key == kSeedKey) values = expand_seeds(values);
  add_axis({std::move(key), std::move(values)});
}

void Grid::add_single(std::string key, std::string value) {
  add_axis({std::move(key), {std::move(value)}});
}

void Grid::add_axis(GridAxis axis) {
  for (const GridAxis& other : axes_) {
    if (other.key == axis.key) {
      throw InputError("the key is given twice",
                       {.where = axis.key, .remedy = "give all its values once, with commas"});
    }
  }
  std::set<std::string> seen;
  for (const std::string& value : axis.values) {
    if (value.empty() && axis.values.size() > 1) {
      throw InputError("one of the values is empty",
                       {.where = axis.key, .remedy = "remove the extra comma"});
    }
    if (!seen.insert(value).second) {
      throw InputError(fmt::format("the value '{}' is given twice", value),
                       {.where = axis.key, .remedy = "give it once; --seeds repeats a run"});
    }
  }
  axes_.push_back(std::move(axis));
}

std::vector<GridRun> Grid::runs() const {
  std::vector<GridRun> runs(1);
  for (const GridAxis& axis : axes_) {
    if (runs.size() * axis.values.size() > kMaxGridRuns) {
      throw InputError(fmt::format("the grid has more than {} runs", kMaxGridRuns),
                       {.where = axis.key, .remedy = "give fewer values, or make two sweeps"});
    }
    std::vector<GridRun> longer;
    for (const GridRun& run : runs) {
      for (const std::string& value : axis.values) {
        GridRun next = run;
        next.assignments.push_back(axis.key + "=" + value);
        if (axis.key == kSeedKey) {
          next.seed = value;
        } else if (axis.values.size() > 1 || axis.key == kMethodKey) {
          next.arm += (next.arm.empty() ? "" : "-") + label(axis, value);
        }
        longer.push_back(std::move(next));
      }
    }
    runs = std::move(longer);
  }
  std::set<std::string> names;
  for (GridRun& run : runs) {
    if (run.arm.empty()) run.arm = "run";
    run.name = run.arm + (run.seed.empty() ? "" : "-seed" + run.seed);
    const std::string base = run.name;
    for (int copy = 2; !names.insert(run.name).second; ++copy) {
      run.name = fmt::format("{}_{}", base, copy);
      run.arm = fmt::format("{}_{}", run.arm, copy);
    }
  }
  return runs;
}

}  // namespace antisd::inline report
