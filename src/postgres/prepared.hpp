// Which statements a session has prepared, and under which names. Without I/O.
#pragma once

#include "recibo/postgres/pipeline.hpp"

#include <string>
#include <unordered_map>

namespace recibo::postgres {

// Statements that this session has prepared, by name.
class prepared_statements {
 public:
  struct entry {
    std::string sql;         // to notice two statements of one name
    std::string as;          // its name on the server
    bool there = false;      // the server has confirmed it
    bool asked = false;      // its prepare is on the way
    unsigned forgotten = 0;  // how often
  };
  // Aborts when the name stands for another text already: that is our bug, and would run the wrong statement.
  entry& of(const statement& what);
  // The server has lost it, or its plan no longer fits the tables: it is prepared afresh, under another name.
  void forget(const statement& what);

 private:
  std::unordered_map<std::string, entry> known_;
};

}  // namespace recibo::postgres
