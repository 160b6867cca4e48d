#include "history/database.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace muster::history {
namespace {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// `code` is an extended result code; `system_error` is the errno behind it, or 0.
absl::Status ToStatus(int code, int system_error, const std::string& path, const char* message) {
  const int primary = code & 0xff;
  if (primary == SQLITE_FULL || system_error == ENOSPC || system_error == EDQUOT) {
    return absl::ResourceExhaustedError(absl::StrCat("the disk under ", DirectoryOf(path),
                                                     " is full; free some space and try again"));
  }
  switch (primary) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(absl::StrCat(path, " is damaged: ", message));
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return absl::UnavailableError(
          absl::StrCat(path, " is locked by another process; try again in a moment"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return absl::PermissionDeniedError(absl::StrCat(
          path, " is not writable", system_error ? ": " : "",
          system_error ? std::strerror(system_error) : "",
          "; check the owner of the file and its directory, or set MUSTER_HOME to another one"));
    case SQLITE_IOERR:
      return absl::InternalError(absl::StrCat(path, ": ", message, system_error ? ": " : "",
                                              system_error ? std::strerror(system_error) : "",
                                              "; check the disk under it"));
    default:
      return absl::InternalError(absl::StrCat(path, ": ", message));
  }
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::RecordBind(int code) {
  if (bind_error_ == SQLITE_OK) bind_error_ = code;
}

void Statement::BindOne(int index, absl::string_view text) {
  // An empty string_view may have a null pointer, which would bind NULL.
  const char* data = text.empty() ? "" : text.data();
  RecordBind(sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8));
}

void Statement::BindOne(int index, const std::optional<int64_t>& number) {
  if (number) {
    BindNumber(index, *number);
  } else {
    RecordBind(sqlite3_bind_null(statement_.get(), index));
  }
}

void Statement::BindNumber(int index, int64_t number) {
  RecordBind(sqlite3_bind_int64(statement_.get(), index, number));
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) {
    return ToStatus(bind_error_, 0, database_->path_, sqlite3_errstr(bind_error_));
  }
  switch (sqlite3_step(statement_.get())) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    default:
      return database_->LastError();
  }
}

absl::Status Statement::Run() {
  absl::Status status;
  for (bool more = true; more && status.ok();) {
    absl::StatusOr<bool> row = Step();
    status = row.status();
    more = row.ok() && *row;
  }
  sqlite3_reset(statement_.get());
  return status;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::optional<int64_t> Statement::OptionalInt(int column) const {
  if (sqlite3_column_type(statement_.get(), column) == SQLITE_NULL) return std::nullopt;
  return Int(column);
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return "";
  return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column)));
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         absl::Duration busy_timeout) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  std::unique_ptr<Database> database(new Database(path, raw));
  if (raw == nullptr) return absl::ResourceExhaustedError(absl::StrCat(path, ": out of memory"));
  if (code != SQLITE_OK) return database->LastError();
  // SQLite silently opens an unwritable file read-only; fail here rather than at the first change.
  if (sqlite3_db_readonly(raw, "main") == 1) return ToStatus(SQLITE_READONLY, EACCES, path, "");
  sqlite3_busy_timeout(raw, static_cast<int>(absl::ToInt64Milliseconds(busy_timeout)));
  // By default the last connection to close checkpoints the -wal and deletes it by name. That is
  // slow for a short command, alters a damaged file that should be kept as found, and is wrong once
  // the name belongs to another file. SQLite checkpoints every 1000 pages anyway.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  MUSTER_RETURN_IF_ERROR(database->Execute("PRAGMA foreign_keys = ON; PRAGMA synchronous = FULL;"));
  return database;
}

absl::Status Database::LastError() const {
  const int code = sqlite3_extended_errcode(database_.get());
  // For other codes the errno is stale.
  const bool from_system = (code & 0xff) == SQLITE_IOERR || (code & 0xff) == SQLITE_CANTOPEN;
  return ToStatus(code, from_system ? sqlite3_system_errno(database_.get()) : 0, path_,
                  sqlite3_errmsg(database_.get()));
}

absl::Status Database::Execute(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return LastError();
  }
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(absl::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.data(), static_cast<int>(sql.size()), &statement,
                         nullptr) != SQLITE_OK) {
    return LastError();
  }
  return Statement(*this, statement);
}

absl::StatusOr<int64_t> Database::QueryInt(absl::string_view sql) {
  MUSTER_ASSIGN_OR_RETURN(Statement query, Prepare(sql));
  MUSTER_ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row) return absl::InternalError(absl::StrCat(path_, ": no row for ", sql));
  return query.Int(0);
}

int64_t Database::Changes() const { return sqlite3_changes64(database_.get()); }

// With a write-ahead log, FULL flushes the log at every commit and NORMAL only when it is
// checkpointed. SQLite ignores the setting within a transaction, so it precedes BEGIN.
absl::StatusOr<Transaction> Transaction::Begin(Database& database, Durability durability) {
  MUSTER_RETURN_IF_ERROR(database.Execute(durability == Durability::kSynced
                                              ? "PRAGMA synchronous = FULL"
                                              : "PRAGMA synchronous = NORMAL"));
  MUSTER_RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::~Transaction() {
  // Some errors roll back by themselves; then this fails, which is harmless.
  if (database_ != nullptr) database_->Execute("ROLLBACK").IgnoreError();
}

absl::Status Transaction::Commit() {
  MUSTER_RETURN_IF_ERROR(database_->Execute("COMMIT"));
  database_ = nullptr;
  return absl::OkStatus();
}

}  // namespace muster::history
