// SPDX-License-Identifier: Apache-2.0
#include "acc/base/host_name.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>

namespace acc {
namespace {

bool is_host_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("_.:-%").find(c) != std::string_view::npos;
}

}  // namespace

bool is_v6_address(std::string_view text) {
  in6_addr address = {};
  return ::inet_pton(AF_INET6, std::string(text.substr(0, text.find('%'))).c_str(), &address) == 1;
}

std::optional<std::string> parse_host_name(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  if (text.empty() || !std::ranges::all_of(text, is_host_character)) return std::nullopt;
  const bool has_colons = text.find(':') != std::string_view::npos;
  if (has_colons && !is_v6_address(text)) return std::nullopt;
  return std::string(text);
}

}  // namespace acc
