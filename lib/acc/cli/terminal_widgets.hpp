// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "acc/cli/terminal_keys.hpp"

namespace acc::launcher {

/// A line editor: takes keys, returns the output for the terminal. Pure.
class TerminalLine {
 public:
  /// `before` is the text before the input in the same line. A `hidden` input is not echoed.
  explicit TerminalLine(std::string before, bool hidden = false)
      : before_(std::move(before)), hidden_(hidden) {}

  const std::string& text() const { return text_; }

  /// The output that draws the line.
  std::string draw() const;
  /// Handles a character, Backspace, Ctrl-W or Ctrl-U. Returns the output for a terminal with `columns`
  /// columns.
  std::string press(const KeyPress& press, std::size_t columns);

 private:
  std::size_t shown_characters() const;

  std::string before_;
  bool hidden_;
  std::string text_ = {};
};

/// A menu: takes keys, returns the output for the terminal. Pure.
class TerminalMenu {
 public:
  /// `choices` must outlive the menu and not be empty. Longer lines than `columns` are cut, so that the
  /// terminal does not wrap them.
  TerminalMenu(const std::vector<std::string>& choices, std::size_t chosen, std::size_t columns = 80,
               bool color = true)
      : choices_(choices), chosen_(chosen), columns_(columns), color_(color) {}

  std::size_t chosen() const { return chosen_; }
  /// The width of the longest line.
  std::size_t width() const;
  /// Sets the number of columns for output from now on.
  void set_columns(std::size_t columns) { columns_ = columns; }

  /// The output that draws the menu: a line about the keys and the choices. Hides the cursor.
  std::string draw() const;
  /// Handles a key: arrows, j and k, Home and End, an index of one or two digits, first letters of a
  /// choice. Returns the output; empty if the choice stays.
  std::string press(const KeyPress& press);
  /// The output that replaces the menu by the selected choice and shows the cursor.
  std::string close() const;
  /// The output that removes the menu and shows the cursor.
  std::string dismiss() const;

 private:
  void move(const KeyPress& press);
  void search(const std::string& letter);
  /// The first choice that begins with these lower-case letters.
  std::optional<std::size_t> find_beginning(const std::string& letters) const;
  std::string line(std::size_t index) const;
  std::string highlighted(const std::string& text) const;
  std::string redraw(std::size_t index) const;

  const std::vector<std::string>& choices_;
  std::size_t chosen_;
  std::size_t columns_;
  bool color_;
  /// The index that the digits pressed so far form.
  std::optional<std::size_t> digits_ = {};
  /// The letters pressed so far, in lower case.
  std::string letters_ = {};
};

}  // namespace acc::launcher
