// The slots of a decoder whose state lives on the host.
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

  // Where the input of the next step is stored.
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

}  // namespace antisd::inline inference
