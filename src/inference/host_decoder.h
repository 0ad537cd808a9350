// What decoders that keep their slots on the host have in common. A slot holds one running
// sequence.
#pragma once

#include <algorithm>
#include <vector>

#include "core/check.h"
#include "inference/decoder.h"

namespace antisd::inline inference {

struct HostSlots {
  HostSlots(int slots, std::int64_t most_pages)
      : most_pages(most_pages),
        tokens(slots),
        positions(slots),
        page_counts(slots),
        pages(slots * most_pages),
        places(slots) {}

  void start(int slot, std::int32_t token, std::int32_t position,
             std::span<const std::int32_t> new_pages, const RandomPlace& place) {
    ANTISD_CHECK(static_cast<std::int64_t>(new_pages.size()) <= most_pages);
    tokens[slot] = token;
    positions[slot] = position;
    places[slot] = place;
    page_counts[slot] = static_cast<std::int32_t>(new_pages.size());
    std::copy(new_pages.begin(), new_pages.end(), pages.begin() + slot * most_pages);
  }

  void move(int from, int to) {
    const std::span<const std::int32_t> source(pages.data() + from * most_pages, page_counts[from]);
    start(to, tokens[from], positions[from], source, places[from]);
  }

  void append_page(int slot, std::int32_t page) {
    ANTISD_CHECK(page_counts[slot] < most_pages);
    pages[slot * most_pages + page_counts[slot]++] = page;
  }

  void advance(int slot, std::int32_t token) {
    tokens[slot] = token;
    ++positions[slot];
    ++places[slot].position;
  }

  // The cache slot of the next step's input.
  std::int64_t cache_slot(int slot) const {
    const std::int64_t page = positions[slot] / kPageTokens;
    ANTISD_CHECK(page < page_counts[slot]);
    return std::int64_t{pages[slot * most_pages + page]} * kPageTokens +
           positions[slot] % kPageTokens;
  }

  std::int64_t most_pages;
  std::vector<std::int32_t> tokens, positions, page_counts;
  std::vector<std::int32_t> pages;  // [slots, most_pages]
  std::vector<RandomPlace> places;
};

// Leaves launch() and take() to its kinds.
class HostDecoder : public Decoder {
 public:
  HostDecoder(const CausalLm& model, const KvPool& pool, const DecoderSettings& settings)
      : model_(model),
        pool_(pool),
        settings_(settings),
        slots_(settings.slots, settings.most_pages),
        common_{settings.sampling, settings.rng},
        sampling_(settings.slots, common_) {}

  bool fits(const DecoderSettings&) const override { return false; }  // cheap to make anew
  void start(int slot, std::int32_t token, std::int32_t position,
             std::span<const std::int32_t> pages, const RandomPlace& place) override {
    slots_.start(slot, token, position, pages, place);
    if (is_individual_) sampling_[slot] = common_;
  }
  void sample_as(int slot, const SequenceSampling& sampling) override {
    is_individual_ = true;
    sampling_[slot] = sampling;
  }
  void move(int from, int to) override {
    slots_.move(from, to);
    if (is_individual_) sampling_[to] = sampling_[from];
  }
  void append_page(int slot, std::int32_t page) override { slots_.append_page(slot, page); }

 protected:
  const CausalLm& model_;
  const KvPool& pool_;
  DecoderSettings settings_;
  HostSlots slots_;
  SequenceSampling common_;
  std::vector<SequenceSampling> sampling_;  // by slot
  bool is_individual_ = false;              // whether a slot has had its own
};

}  // namespace antisd::inline inference
