// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acc/error.hpp"

namespace {

void add_options(CLI::App& app, Options& options) {
  app.option_defaults()->always_capture_default();
  app.add_option("--data-dir", options.data_dir,
                 "Folder with the four MNIST files, .gz or not, or with CIFAR-10's; default: 5,000 digits")
      ->capture_default_str();
  app.add_option("--epochs", options.epochs, "Passes through the training images")
      ->check(CLI::PositiveNumber);
}

void parse(CLI::App& app, int argc, char** argv, const std::string& further_help = {}) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs((app.help() + further_help).c_str(), stdout);
    std::exit(0);
  } catch (const CLI::ParseError& error) {
    throw acc::Error({.what = error.what(), .hint = "--help lists the options"});
  }
}

}  // namespace

Options parse_options(int argc, char** argv, std::filesystem::path* run) {
  Options options;
  CLI::App app;
  if (run != nullptr) app.add_option("RUN", *run, "Folder for what the program writes")->required();
  add_options(app, options);
  parse(app, argc, argv);
  return options;
}

Options parse_known_options(int& argc, char** argv, const std::string& further_help) {
  Options options;
  CLI::App app;
  app.allow_extras();
  add_options(app, options);
  parse(app, argc, argv, further_help);
  const std::vector<std::string> rest = app.remaining();
  // Each word of the rest is one of argv's, and they are in its order.
  int kept = 1;
  for (int word = 1; word < argc; ++word) {
    const auto next = static_cast<std::size_t>(kept - 1);
    if (next < rest.size() && rest[next] == argv[word]) argv[kept++] = argv[word];
  }
  argv[kept] = nullptr;
  argc = kept;
  return options;
}
