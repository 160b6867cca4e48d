// SQLite's C interface as values: the only file that includes sqlite3.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster {

class Database;

// A prepared statement. Must not outlive its Database. Not thread-safe.
class Statement {
 public:
  // Binds parameters 1, 2, …; text is copied. A failure to bind is reported by Step.
  template <typename... T>
  void Bind(const T&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
  }

  // True when there is a row to read, false at the end.
  absl::StatusOr<bool> Step();
  // Steps to the end and makes the statement ready for the next Bind.
  absl::Status Run();

  // Columns of the current row, counted from 0.
  int64_t Int(int column) const;
  std::optional<int64_t> OptionalInt(int column) const;
  std::string Text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(const Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  void BindOne(int index, absl::string_view text);
  void BindOne(int index, std::integral auto number) {
    BindNumber(index, static_cast<int64_t>(number));
  }
  void BindOne(int index, const std::optional<int64_t>& number);
  void BindNumber(int index, int64_t number);
  void Note(int code);

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

// A connection to one file. Not thread-safe; must stay in the process that opened it.
//
// Errors: DataLoss when the file is damaged or no database, ResourceExhausted when the disk is
// full, PermissionDenied when it cannot be written, Unavailable when another process holds it for
// longer than the time-out, Internal for the rest. Each names the file and what to do.
class Database {
 public:
  // Opens an existing file for reading and writing; does not create one.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        absl::Duration busy_timeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs SQL of our own, one statement or several.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // The first column of the first row of a query that has one.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  // Rows that the last INSERT, UPDATE or DELETE touched.
  int64_t Changes() const;

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database(std::string path, sqlite3* database) : path_(std::move(path)), database_(database) {}
  absl::Status LastError() const;

  std::string path_;
  std::unique_ptr<sqlite3, Close> database_;
};

// Whether a commit waits for the disk. Either survives the death of any process and leaves the file
// whole after power loss; without waiting, the last commits may then be missing.
enum class Durability { kSynced, kLazy };

// Takes the write lock at once, so that what is read inside cannot change before it is written
// back. Rolled back unless committed.
class Transaction {
 public:
  static absl::StatusOr<Transaction> Begin(Database& database,
                                           Durability durability = Durability::kSynced);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Status Commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;  // null once it is over
};

}  // namespace muster
