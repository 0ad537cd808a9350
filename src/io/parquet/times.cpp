#include "io/parquet/times.h"

#include <cstdint>

#include <fmt/format.h>

namespace antisd::inline io::parquet_library {
namespace {

struct Unit {
  std::int64_t per_second;
  int digits;
};

Unit unit_of(arrow::TimeUnit::type unit) {
  switch (unit) {
    case arrow::TimeUnit::SECOND:
      return {1, 0};
    case arrow::TimeUnit::MILLI:
      return {1'000, 3};
    case arrow::TimeUnit::MICRO:
      return {1'000'000, 6};
    default:
      return {1'000'000'000, 9};
  }
}

struct Floor {
  std::int64_t quotient;
  std::int64_t remainder;  // never negative
};

Floor floor_divide(std::int64_t value, std::int64_t divisor) {
  std::int64_t quotient = value / divisor;
  std::int64_t remainder = value % divisor;
  if (remainder < 0) {
    remainder += divisor;
    --quotient;
  }
  return {quotient, remainder};
}

// Days since 1970-01-01 in the proleptic Gregorian calendar. The calendar repeats every 400 years =
// 146,097 days; years are counted from March so that a leap day comes last.
std::string date_text(std::int64_t days) {
  const auto [era, day_of_era] = floor_divide(days + 719'468, 146'097);  // 0000-03-01 is day 0
  const std::int64_t year_of_era =
      (day_of_era - day_of_era / 1'460 + day_of_era / 36'524 - day_of_era / 146'096) / 365;
  const std::int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const std::int64_t month_from_march = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
  const std::int64_t month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9;
  const std::int64_t year = era * 400 + year_of_era + (month <= 2 ? 1 : 0);
  return fmt::format("{:04}-{:02}-{:02}", year, month, day);
}

std::string time_text(std::int64_t ticks, const Unit& unit) {
  const auto [seconds, fraction] = floor_divide(ticks, unit.per_second);
  std::string text =
      fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
  if (unit.digits > 0) text += fmt::format(".{:0{}}", fraction, unit.digits);
  return text;
}

}  // namespace

std::string iso_8601(const arrow::Array& array, std::int64_t row) {
  switch (array.type_id()) {
    case arrow::Type::DATE32:
      return date_text(static_cast<const arrow::Date32Array&>(array).Value(row));
    case arrow::Type::DATE64:
      return date_text(
          floor_divide(static_cast<const arrow::Date64Array&>(array).Value(row), 86'400'000)
              .quotient);
    case arrow::Type::TIME32:
      return time_text(static_cast<const arrow::Time32Array&>(array).Value(row),
                       unit_of(static_cast<const arrow::Time32Type&>(*array.type()).unit()));
    case arrow::Type::TIME64:
      return time_text(static_cast<const arrow::Time64Array&>(array).Value(row),
                       unit_of(static_cast<const arrow::Time64Type&>(*array.type()).unit()));
    default:
      break;
  }
  const auto& type = static_cast<const arrow::TimestampType&>(*array.type());
  const Unit unit = unit_of(type.unit());
  const std::int64_t value = static_cast<const arrow::TimestampArray&>(array).Value(row);
  const auto [day, ticks] = floor_divide(value, 86'400 * unit.per_second);
  return date_text(day) + "T" + time_text(ticks, unit) + (type.timezone().empty() ? "" : "Z");
}

}  // namespace antisd::inline io::parquet_library
