// Matrices: evaluates sums, multiples, products and transposes of them.
#include <algorithm>

#include "reward/math/answer_compare.h"

namespace antisd::inline reward::math {
namespace {

constexpr std::size_t kMaxProductSize = 12;  // rows and columns of an evaluated product

bool is_vector(Expression e) {
  return e->op == Op::kMatrix &&
         (e->args.size() == 1 || std::all_of(e->args.begin(), e->args.end(),
                                             [](Expression row) { return row->args.size() == 1; }));
}

std::size_t columns(Expression matrix) {
  return matrix->args[0]->args.size();
}

bool is_rectangular(Expression matrix) {
  return std::all_of(matrix->args.begin(), matrix->args.end(),
                     [&](Expression row) { return row->args.size() == columns(matrix); });
}

// The matrix whose cells are cell(row, column).
template <typename Cell>
Expression make_matrix(Arena& arena, std::size_t rows, std::size_t columns, Cell&& cell) {
  std::vector<Expression> all;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<Expression> cells;
    for (std::size_t c = 0; c < columns; ++c)
      cells.push_back(cell(r, c));
    all.push_back(arena.tuple(std::move(cells), '(', ')'));
  }
  return arena.make(Op::kMatrix, std::move(all));
}

Expression at(Expression matrix, std::size_t row, std::size_t column) {
  return matrix->args[row]->args[column];
}

// Null if the dimensions do not fit.
Expression sum(Arena& arena, Expression a, Expression b) {
  if (a->args.size() != b->args.size() || columns(a) != columns(b)) return nullptr;
  return make_matrix(arena, a->args.size(), columns(a), [&](std::size_t r, std::size_t c) {
    return arena.make(Op::kAdd, {at(a, r, c), at(b, r, c)});
  });
}

Expression product(Arena& arena, Expression a, Expression b) {
  const std::size_t inner = columns(a);
  if (inner != b->args.size() || std::max({a->args.size(), inner, columns(b)}) > kMaxProductSize)
    return nullptr;
  return make_matrix(arena, a->args.size(), columns(b), [&](std::size_t r, std::size_t c) {
    std::vector<Expression> terms;
    for (std::size_t k = 0; k < inner; ++k)
      terms.push_back(arena.make(Op::kMultiply, {at(a, r, k), at(b, k, c)}));
    return arena.make(Op::kAdd, std::move(terms));
  });
}

}  // namespace

// The value of an expression with matrices, or the expression itself.
Expression AnswerComparer::as_matrix(Expression e) {
  if (e->op == Op::kMatrix || !contains(e, Op::kMatrix)) return e;
  const auto scaled = [&](Expression matrix, auto&& change) {
    return make_matrix(arena_, matrix->args.size(), columns(matrix),
                       [&](std::size_t r, std::size_t c) { return change(at(matrix, r, c)); });
  };
  const auto usable = [](Expression x) { return x->op == Op::kMatrix && is_rectangular(x); };
  std::vector<Expression> parts, scalars;
  for (Expression arg : e->args) {
    Expression part = as_matrix(arg);
    if (usable(part))
      parts.push_back(part);
    else if (contains(part, Op::kMatrix))
      return e;
    else
      scalars.push_back(part);
  }
  if (parts.empty()) return e;
  Expression total = parts[0];
  switch (e->op) {
    case Op::kNegate:
      return scaled(total, [&](Expression cell) { return arena_.make(Op::kNegate, {cell}); });
    case Op::kDivide:
      if (parts.size() != 1 || contains(e->args[1], Op::kMatrix)) return e;
      return scaled(total, [&](Expression cell) {
        return arena_.make(Op::kDivide, {cell, scalars[0]});
      });
    case Op::kPower:
      if (!is_symbol(e->args[1], "T")) return e;
      return make_matrix(arena_, columns(total), total->args.size(),
                         [&](std::size_t r, std::size_t c) { return at(total, c, r); });
    case Op::kAdd:
    case Op::kMultiply:
      if (e->op == Op::kAdd && !scalars.empty()) return e;
      for (std::size_t k = 1; k < parts.size(); ++k) {
        total = e->op == Op::kAdd ? sum(arena_, total, parts[k]) : product(arena_, total, parts[k]);
        if (total == nullptr) return e;
      }
      if (scalars.empty()) return total;
      return scaled(total, [&](Expression cell) {
        std::vector<Expression> factors = scalars;
        factors.push_back(cell);
        return arena_.make(Op::kMultiply, std::move(factors));
      });
    default:
      return e;
  }
}

Comparison AnswerComparer::compare_matrices(Expression a, Expression b) {
  if (a->op != Op::kMatrix) std::swap(a, b);
  if (b->op == Op::kMatrix) {
    if (a->args.size() != b->args.size()) return Comparison::kDifferent;
    return compare_ordered(a->args, b->args);
  }
  // [[1, 2], [3, 4]]
  if (b->op == Op::kTuple && b->args.size() == a->args.size() && a->args.size() > 1 &&
      std::all_of(b->args.begin(), b->args.end(),
                  [](Expression row) { return row->op == Op::kTuple; })) {
    Items cells, entries;
    for (std::size_t k = 0; k < a->args.size(); ++k) {
      if (a->args[k]->args.size() != b->args[k]->args.size()) return Comparison::kDifferent;
      cells.insert(cells.end(), a->args[k]->args.begin(), a->args[k]->args.end());
      entries.insert(entries.end(), b->args[k]->args.begin(), b->args[k]->args.end());
    }
    return compare_ordered(cells, entries);
  }
  // A vector may be written as a tuple.
  if (!is_vector(a) || b->op != Op::kTuple) {
    if (a->args.size() == 1 && a->args[0]->args.size() == 1) return compare(a->args[0]->args[0], b);
    return Comparison::kDifferent;
  }
  Items cells;
  for (Expression row : a->args)
    cells.insert(cells.end(), row->args.begin(), row->args.end());
  return compare_ordered(cells, b->args);
}

}  // namespace antisd::inline reward::math
