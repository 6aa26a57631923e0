// SPDX-License-Identifier: Apache-2.0
#include "acc/report/matrix_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "acc/report/html_text.hpp"

namespace acc::launcher {
namespace {

// The unit of lengths is the side of a cell.

constexpr std::size_t kMaxLabels = 16;
// Of a matrix with so many rows the texts in its cells can be read on a phone.
constexpr std::size_t kMaxTexts = 12;

// Each so many-th label is shown, a power of two, as are numbers of ranks on hosts.
std::size_t label_step(std::size_t size) {
  std::size_t step = 1;
  while (size > kMaxLabels * step) step *= 2;
  return step;
}

std::string cell_rects(const MatrixChart& chart) {
  const std::size_t size = chart.labels.size();
  std::string svg;
  for (std::size_t i = 0; i < chart.cells.size(); ++i) {
    const MatrixCell& cell = chart.cells[i];
    if (cell.style.empty()) continue;
    fmt::format_to(std::back_inserter(svg),
                   R"(<rect x="{}" y="{}" width="1" height="1" class="{}"><title>{}</title></rect>)",
                   i % size, i / size, cell.style, html_text(cell.title));
  }
  return svg;
}

std::string cell_texts(const MatrixChart& chart) {
  const std::size_t size = chart.labels.size();
  if (size > kMaxTexts) return "";
  std::string svg;
  for (std::size_t i = 0; i < chart.cells.size(); ++i) {
    const MatrixCell& cell = chart.cells[i];
    if (cell.style.empty() || cell.text.empty()) continue;
    fmt::format_to(std::back_inserter(svg), R"(<text x="{}.5" y="{}.6" class="on-{}">{}</text>)", i % size,
                   i / size, cell.style, html_text(cell.text));
  }
  return svg;
}

std::string frames(const MatrixChart& chart) {
  const std::size_t size = chart.labels.size();
  std::string path;
  for (std::size_t i = 0; i < chart.cells.size(); ++i) {
    if (chart.cells[i].is_marked)
      fmt::format_to(std::back_inserter(path), "M{} {}h1v1h-1z", i % size, i / size);
  }
  return path.empty() ? "" : fmt::format(R"(<path class="frame" d="{}"/>)", path);
}

std::string border_lines(const MatrixChart& chart) {
  const std::size_t size = chart.labels.size();
  std::string path;
  for (const std::size_t border : chart.borders)
    fmt::format_to(std::back_inserter(path), "M0 {0}h{1}M{0} 0v{1}", border, size);
  return path.empty() ? "" : fmt::format(R"(<path class="border" d="{}"/>)", path);
}

std::string label_texts(const MatrixChart& chart, double margin) {
  std::string svg;
  for (std::size_t i = 0; i < chart.labels.size(); i += label_step(chart.labels.size())) {
    const std::string label = html_text(chart.labels[i]);
    fmt::format_to(std::back_inserter(svg),
                   R"(<text x="{:.2f}" y="{:.2f}" class="row">{}</text><text x="{}.5" y="{:.2f}">{}</text>)",
                   -margin * 0.2, static_cast<double>(i) + 0.5 + margin * 0.15, label, i, -margin * 0.25,
                   label);
  }
  return svg;
}

}  // namespace

std::string matrix_svg(const MatrixChart& chart) {
  // A matrix of a few ranks need not fill a screen.
  constexpr double kMaxCellRem = 3.6;
  const auto size = static_cast<double>(chart.labels.size());
  const std::size_t step = label_step(chart.labels.size());
  const double margin = step == 1 ? 0.8 : static_cast<double>(step);
  return fmt::format(
             R"(<svg class="matrix" role="img" viewBox="{:.1f} {:.1f} {:.1f} {:.1f}" style="max-width:{:.1f}rem">)",
             -margin, -margin, size + margin + 0.2, size + margin + 0.2, (size + margin) * kMaxCellRem) +
         (step == 1 ? "<g class=\"apart\">" : "<g>") + cell_rects(chart) + "</g>" + border_lines(chart) +
         frames(chart) + R"(<g class="texts">)" + cell_texts(chart) + "</g>" +
         fmt::format(R"(<g class="labels" font-size="{:.2f}">)", margin * 0.45) + label_texts(chart, margin) +
         "</g></svg>\n";
}

}  // namespace acc::launcher
