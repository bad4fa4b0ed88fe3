/** SQL that takes a file from format 7 back to format 6. */
const undoFormat7 =
  'DROP TABLE table_row; DROP TABLE row_quarantine; DROP INDEX message_external_id; ALTER TABLE message DROP COLUMN external_id; PRAGMA user_version = 6;'

/** SQL that takes a file from format 7 back to format 5. */
export const undoFormat6 = `${undoFormat7} DROP TABLE master_key; DELETE FROM meta WHERE name IN ('store', 'encrypted'); PRAGMA user_version = 5;`

/** SQL that takes a file from format 7 back to format 3. */
export const undoFormat4 = `${undoFormat6} ALTER TABLE message DROP COLUMN payload; ALTER TABLE message DROP COLUMN branch;
  ALTER TABLE message ADD COLUMN terms TEXT NOT NULL DEFAULT ''; PRAGMA user_version = 3;`
