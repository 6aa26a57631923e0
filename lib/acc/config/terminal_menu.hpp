// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "acc/config/terminal_keys.hpp"

namespace acc::launcher {

/// A list of choices on a terminal: what to write there, and which choice is meant. Pure.
class TerminalMenu {
 public:
  /// `choices` must outlive the menu and not be empty. What is too long for a line of `columns` is cut, so
  /// that the terminal breaks none.
  TerminalMenu(const std::vector<std::string>& choices, std::size_t chosen, std::size_t columns = 80,
               bool color = true)
      : choices_(choices), chosen_(chosen), columns_(columns), color_(color) {}

  std::size_t chosen() const { return chosen_; }
  /// The columns that the longest line takes.
  std::size_t width() const;
  /// Lines that are drawn from now on have room for so many.
  void set_columns(std::size_t columns) { columns_ = columns; }

  /// A line about the keys and the list, with the cursor hidden below it.
  std::string draw() const;
  /// Moves by a key: arrows, j and k, Home and End, an index in one or two digits, letters that a choice
  /// begins with. Empty when nothing moves.
  std::string press(const KeyPress& press);
  /// Replaces what draw() wrote by the choice alone, and shows the cursor.
  std::string close() const;
  /// Removes what draw() wrote, and shows the cursor.
  std::string dismiss() const;

 private:
  void move(const KeyPress& press);
  void search(const std::string& letter);
  /// The first choice that begins with these letters (in lower case).
  std::optional<std::size_t> find_beginning(const std::string& letters) const;
  std::string line(std::size_t index) const;
  std::string highlighted(const std::string& text) const;
  std::string redraw(std::size_t index) const;

  const std::vector<std::string>& choices_;
  std::size_t chosen_;
  std::size_t columns_;
  bool color_;
  /// The index that the digits typed so far make.
  std::optional<std::size_t> digits_ = {};
  /// The letters typed so far, in lower case.
  std::string letters_ = {};
};

}  // namespace acc::launcher
