// Rows of one table on their way to one `INSERT … SELECT FROM unnest(…)`: a binary array per column, filled row by row.
#pragma once

#include "recibo/postgres/arrays.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <cstddef>
#include <vector>

namespace recibo::storage {

// A pipeline, and how many rows each of its statements must report (write path, rule 8).
struct checked_pipeline {
  postgres::pipeline statements;
  // Parallel to the steps; -1: not counted.
  std::vector<std::int64_t> expected;

  void add(const postgres::statement& what, postgres::parameters with, std::int64_t rows = -1) {
    statements.add(what, std::move(with));
    expected.push_back(rows);
  }
};

// The columns of `what`, whose parameters are all arrays. Columns are filled in order, once per row.
class bulk {
 public:
  explicit bulk(const postgres::statement& what);

  std::size_t size() const noexcept { return rows_; }
  bool empty() const noexcept { return rows_ == 0; }
  // The next column's array; begins a new row after the last column.
  postgres::binary_array& next();
  // Adds the statement with all rows; nothing when there are none. An INSERT must report as many rows; statements that
  // change rows check their count themselves, in the transaction (recibo.expect_rows). Call once.
  void append_to(checked_pipeline& to) &&;

 private:
  const postgres::statement* what_;
  std::vector<postgres::binary_array> columns_;
  std::size_t at_ = 0, rows_ = 0;
};

}  // namespace recibo::storage
