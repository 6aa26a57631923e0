// SPDX-License-Identifier: Apache-2.0
#include "acc/base/home.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace acc {
namespace {

namespace fs = std::filesystem;

fs::path home_folder(const Environment& environment) {
  if (const auto home = environment.find("HOME")) return *home;
  // Batch systems may start jobs without HOME.
  std::array<char, 4096> buffer = {};
  passwd entry = {};
  passwd* match = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &match);
  return match == nullptr ? fs::path("/") : fs::path(match->pw_dir);
}

}  // namespace

fs::path expand_home(std::string_view text, const Environment& environment) {
  if (text == "~") return home_folder(environment);
  if (text.starts_with("~/")) return home_folder(environment) / text.substr(2);
  return text;
}

}  // namespace acc
