// SPDX-License-Identifier: Apache-2.0
#include "acc/config/paths.hpp"

#include <pwd.h>
#include <unistd.h>

#include <array>

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

fs::path home_folder(const Environment& environment) {
  if (const auto home = environment.find("HOME")) return *home;
  // Batch systems start jobs without HOME.
  std::array<char, 4096> buffer = {};
  passwd entry = {};
  passwd* found = nullptr;
  ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found);
  return found == nullptr ? fs::path("/") : fs::path(found->pw_dir);
}

}  // namespace

fs::path expand_home(std::string_view text, const Environment& environment) {
  if (text == "~") return home_folder(environment);
  if (text.starts_with("~/")) return home_folder(environment) / text.substr(2);
  return text;
}

fs::path default_config_path(const Environment& environment) {
  fs::path base = expand_home("~/.cache", environment) / "huggingface";
  if (const auto cache = environment.find("XDG_CACHE_HOME"))
    base = expand_home(*cache, environment) / "huggingface";
  if (const auto home = environment.find("HF_HOME")) base = expand_home(*home, environment);
  return base / "accelerate" / "default_config.yaml";
}

std::optional<fs::path> find_default_config(const Environment& environment) {
  fs::path file = default_config_path(environment);
  std::error_code ignored;
  if (fs::exists(file, ignored)) return file;
  file.replace_extension(".json");
  if (fs::exists(file, ignored)) return file;
  return std::nullopt;
}

}  // namespace acc::launcher
