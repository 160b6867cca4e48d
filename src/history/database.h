// A C++ interface to SQLite. Only database.cc includes sqlite3.h.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

struct sqlite3;
struct sqlite3_stmt;

namespace muster::history {

class Database;

// A prepared statement. Must not outlive its Database. Not thread-safe.
class Statement {
 public:
  // Binds parameters 1, 2, …; copies text. Step() reports a failed bind.
  template <typename... T>
  void Bind(const T&... values) {
    int index = 0;
    (BindOne(++index, values), ...);
  }
  // Likewise for a number of texts that is not known before.
  void BindList(const std::vector<std::string>& texts) {
    int index = 0;
    for (const std::string& text : texts) BindOne(++index, absl::string_view(text));
  }

  // Returns true if there is a row to read, false at the end.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets the statement for the next Bind.
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
  void RecordBind(int code);

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  int bind_error_ = 0;
};

// A connection to one file. Not thread-safe; must stay in the process that opened it.
//
// Errors: DataLoss if the file is damaged or not a database, ResourceExhausted if the disk is full,
// PermissionDenied if the file is not writable, Unavailable if another process holds its lock for
// longer than the timeout, Internal otherwise. Messages name the file and the remedy.
class Database {
 public:
  // Opens an existing file for reading and writing. Does not create it.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        absl::Duration busy_timeout);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Runs one or several SQL statements. REQUIRES: `sql` contains no user input.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql);
  // Returns the first column of the first row, or Internal if the query has no rows.
  absl::StatusOr<int64_t> QueryInt(absl::string_view sql);
  // Returns the number of rows that the last INSERT, UPDATE or DELETE changed.
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

// kSynced: a commit waits for the disk. kLazy: it does not, and the last commits may be lost on
// power failure. Both survive the death of any process and keep the file consistent.
enum class Durability { kSynced, kLazy };

// A write transaction. Takes the write lock at the start, so that data read inside cannot change
// before it is written back. The destructor rolls back unless Commit() succeeded.
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
  Database* database_;  // null after Commit()
};

}  // namespace muster::history
