// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "acc/base/error.hpp"
#include "acc/base/files.hpp"
#include "acc/base/log.hpp"
#include "acc/config/document.hpp"
#include "acc/config/migration.hpp"
#include "command_parsing.hpp"
#include "commands.hpp"

namespace acc::launcher {
namespace {

struct ConvertOptions {
  std::string config_file = {};
  std::string output_file = {};
  bool overwrite = false;
};

int convert(const ConvertOptions& options) {
  const std::string text = read_file(options.config_file, DocumentLimits::kBytes);
  if (options.output_file.empty() && !options.overwrite)
    throw Error({.what = "no output is given", .hint = "--output_file FILE, or --overwrite"});
  const std::string output = options.output_file.empty() ? options.config_file : options.output_file;
  if (!options.overwrite && std::filesystem::exists(output))
    throw Error({.what = "already exists", .where = output, .hint = "replace it with --overwrite"});
  const Fsdp2Text result = to_fsdp2(text, options.config_file);
  for (const std::string& note : result.notes)
    log::write(log::Level::info, options.config_file + ": " + note);
  replace_file(output, result.text);
  return 0;
}

}  // namespace

void add_to_fsdp2_command(CLI::App& app, int& code) {
  const auto options = std::make_shared<ConvertOptions>();
  CLI::App* command = app.add_subcommand("to-fsdp2", "Rewrite a config file for version 2 of FSDP");
  refuse_empty(command->add_option("--config_file,--config-file", options->config_file, "The config file"))
      ->required();
  refuse_empty(command->add_option("--output_file,--output-file", options->output_file, "The output file"));
  command->add_flag("--overwrite", options->overwrite, "Replace an existing file");
  command->callback([options, &code] { code = convert(*options); });
}

}  // namespace acc::launcher
