// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

/// What every program of the tutorial takes.
struct Options {
  /// See load_data.
  std::filesystem::path data_dir = {};
  /// Passes through the training images, at least 1.
  int epochs = 3;
};

/// Reads `--data-dir FOLDER` and `--epochs N`, and with `run` before them one word, the folder for what the
/// program writes. Prints the options and ends the program for `--help`. Throws acc::Error{usage} for
/// anything else.
Options parse_options(int argc, char** argv, std::filesystem::path* run = nullptr);

/// The same for a program with further options, as argparse's parse_known_args: removes from `argv` what it
/// takes and leaves the rest in its order. `further_help` follows on `--help`.
Options parse_known_options(int& argc, char** argv, const std::string& further_help);
