// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "acc/base/error.hpp"
#include "acc/base/text.hpp"
#include "acc/script/project.hpp"
#include "commands.hpp"
#include "templates.hpp"
#include "version.hpp"

namespace acc::launcher {
namespace {

namespace fs = std::filesystem;

struct NewOptions {
  std::string kind = {};
  std::string folder = {};
  bool trainer = false;
};

struct Kind {
  const char* name;
  const char* description;
};

constexpr std::array kKinds = {
    Kind{"training", "A training in C++: CMake, the network, a data set, a test, a README"}};

// trainer.cpp is the main program instead of main.cpp, and there is no other then.
std::vector<ProjectFile> training_files(const std::string& name, bool trainer) {
  const std::map<std::string, std::string> values = {
      {"name", name},
      {"version", ACC_VERSION},
      {"commit", commit() == "unknown" ? "v" ACC_VERSION : std::string(commit())},
      {"repository", std::string(repository())}};
  std::vector<ProjectFile> files;
  for (ProjectFile& file : training_template()) {
    if (file.path == (trainer ? "main.cpp" : "trainer.cpp")) continue;
    if (file.path == "trainer.cpp") file.path = "main.cpp";
    files.push_back({std::move(file.path), fill_in(file.text, values)});
  }
  std::ranges::sort(files, {}, &ProjectFile::path);
  return files;
}

void make_training(const NewOptions& options) {
  const std::string name = project_name(options.folder);
  const std::vector<ProjectFile> files = training_files(name, options.trainer);
  write_project(options.folder, files);
  for (const ProjectFile& file : files) fmt::print("{}\n", (fs::path(options.folder) / file.path).string());
  fmt::print(
      "\nNext:\n"
      "  cd {}\n"
      "  cmake -B build && cmake --build build\n"
      "  acc launch build/{}\n",
      shell_word(options.folder), name);
}

void make(const NewOptions& options) {
  if (options.kind.empty()) {
    for (const Kind& kind : kKinds) fmt::print("{}  {}\n", kind.name, kind.description);
    return;
  }
  const std::vector<std::string> kinds = project_kinds();
  if (!contains(kinds, options.kind)) {
    const std::string nearest = did_you_mean(options.kind, kinds);
    throw Error({.what = "no such kind of project",
                 .where = shorten(options.kind),
                 .hint = nearest.empty() ? "acc new lists the kinds" : nearest});
  }
  if (options.folder.empty()) {
    throw Error({.what = "needs the folder to make",
                 .where = "acc new " + options.kind,
                 .hint = "as in acc new " + options.kind + " my_project"});
  }
  make_training(options);
}

}  // namespace

std::vector<std::string> project_kinds() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

void add_new_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<NewOptions>();
  CLI::App* command = app.add_subcommand("new", "Write a project to start from");
  command->add_option("kind", options->kind, "What to write: training; without it the kinds are listed");
  command->add_option("folder", options->folder, "The folder to make; its last part names the program");
  command->add_flag("--trainer", options->trainer,
                    "Training: with a Trainer instead of an Accelerator and a loop");
  command->callback([options, &code] {
    make(*options);
    code = 0;
  });
}

}  // namespace acc::launcher
