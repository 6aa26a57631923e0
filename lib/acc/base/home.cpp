// SPDX-License-Identifier: Apache-2.0
#include "acc/base/home.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>

namespace acc {
namespace {

// The home folder that the user database has for the user; for none, that of this process's user.
std::optional<std::string> home_in_database(const std::string& user) {
  std::array<char, 4096> buffer = {};
  passwd entry = {};
  passwd* match = nullptr;
  if (user.empty()) {
    ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &match);
  } else {
    ::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &match);
  }
  if (match == nullptr) return std::nullopt;
  return match->pw_dir;
}

}  // namespace

std::filesystem::path expand_home(std::string_view text, const Environment& environment) {
  if (!text.starts_with('~')) return text;
  const std::string user(text.substr(1, text.find('/') - 1));
  const std::string_view rest = text.substr(1 + user.size());
  // Batch systems may start jobs without HOME.
  std::optional<std::string> home = user.empty() ? environment.find("HOME") : std::nullopt;
  if (!home) home = home_in_database(user);
  if (!home && !user.empty()) return text;
  std::string path = home.value_or("");
  while (path.ends_with('/')) path.pop_back();
  path += rest;
  return path.empty() ? "/" : path;
}

}  // namespace acc
