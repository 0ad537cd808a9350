#include "dist/communicator.h"

#include <cstring>

#include "core/check.h"

namespace antisd::inline dist {
namespace {

class Done : public Transfer {
 public:
  void wait() override {}
};

class Alone : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void enter(const std::string&) override {}
  std::vector<std::string> gather(const std::string& own) override { return {own}; }
  std::unique_ptr<Transfer> exchange_parts(const Parts& parts) override { return keep(parts); }
  std::unique_ptr<Transfer> collect_parts(const Parts& parts) override { return keep(parts); }
  std::unique_ptr<Communicator> among(const std::vector<int>& ranks) override {
    ANTISD_CHECK(ranks == std::vector{0});
    return alone();
  }
  std::unique_ptr<Communicator> beside() override { return alone(); }
  std::vector<double> take_waits() override { return {}; }

 private:
  static std::unique_ptr<Transfer> keep(const Parts& parts) {
    if (parts.own != parts.received) {
      ANTISD_CHECK(parts.kind == MemoryKind::kHost);  // one rank has nothing to move on a GPU
      std::memcpy(parts.received, parts.own, static_cast<std::size_t>(parts.part_bytes));
    }
    return std::make_unique<Done>();
  }
};

}  // namespace

double sum_over(Communicator& ranks, double value) {
  return sum_over(ranks, std::span(&value, 1)).front();
}

std::vector<double> sum_over(Communicator& ranks, std::span<const double> values) {
  const std::vector<double> all = gather_values(ranks, values);
  ANTISD_CHECK_EQ(all.size(), values.size() * static_cast<std::size_t>(ranks.size()));
  std::vector<double> sums(all.begin(), all.begin() + std::ssize(values));
  for (std::size_t i = values.size(); i < all.size(); ++i)
    sums[i % values.size()] += all[i];
  return sums;
}

std::vector<double> gather_values(Communicator& ranks, std::span<const double> own) {
  std::vector<double> values;
  for (const std::string& bytes :
       ranks.gather({reinterpret_cast<const char*>(own.data()), own.size_bytes()})) {
    const std::size_t before = values.size();
    values.resize(before + bytes.size() / sizeof(double));
    if (!bytes.empty()) std::memcpy(values.data() + before, bytes.data(), bytes.size());
  }
  return values;
}

std::unique_ptr<Communicator> alone() {
  return std::make_unique<Alone>();
}

}  // namespace antisd::inline dist
