// For a word that is none of those that are known: the one that was probably meant. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace sandglass {

// How many letters must be added, dropped, replaced or swapped with their neighbour to make one of the other.
size_t EditDistance(std::string_view one, std::string_view other);

// The nearest of `known` that is near enough; "": none is.
std::string_view NearestWord(std::string_view word, std::span<const std::string_view> known);

}  // namespace sandglass
