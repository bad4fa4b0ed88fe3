import { derivedColumns, messageColumns, sessionColumns, updateMessage } from './rows.ts'

/** Statements of `Writer`. */
export const writeStatements = {
  session: `SELECT ${sessionColumns} FROM session WHERE scope = ? AND name = ?`,
  epoch: 'SELECT epoch FROM tombstone WHERE key = ?',
  insertSession: `INSERT INTO session (scope, name, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps)
    VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?, 0, 0, 0, NULL, '[]')`,
  updateSession: `UPDATE session SET revision = ?, stamp = ?, removals = ?, learnt = ?, touched = ?, expires = ?, messages = ?, last = ?, weight = ?, asked = ?, gaps = ? WHERE id = ?`,
  findOperation: 'SELECT first, last FROM operation WHERE session = ? AND id = ?',
  insertOperation: 'INSERT INTO operation (session, id, revision, first, last) VALUES (?, ?, ?, ?, ?)',
  pruneOperations: 'DELETE FROM operation WHERE session = ? AND revision <= ?',
  insertMessage: `INSERT INTO message (session, sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content, payload, branch, external_id, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  replaceMessage: updateMessage,
  messagePosition: 'SELECT "offset", weight FROM message WHERE session = ? AND sequence = ?',
  offsetAfter: 'SELECT "offset" FROM message WHERE session = ? AND sequence > ? ORDER BY sequence LIMIT 1',
  findExternalId: 'SELECT sequence FROM message WHERE session = ? AND external_id = ?',
  putDerived: `INSERT INTO derived (session, id, kind, at, body, sum) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET kind = excluded.kind, at = excluded.at, body = excluded.body, sum = excluded.sum`,
  insertRecord: `INSERT INTO record (session, number, id, at, body)
    SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3, ?4 FROM record WHERE session = ?1`,
  pruneRecords:
    'DELETE FROM record WHERE session = ?1 AND number <= (SELECT max(number) FROM record WHERE session = ?1) - ?2',
  deleteRecords: 'DELETE FROM record WHERE session = ?',
  deleteMessage: 'DELETE FROM message WHERE session = ? AND sequence = ?',
  deleteDerived: 'DELETE FROM derived WHERE session = ? AND id = ?',
  deleteVector: 'DELETE FROM vector WHERE session = ? AND id = ?',
  userMessagesBefore:
    "SELECT sequence, content FROM message WHERE session = ? AND role = 'user' AND sequence < ? ORDER BY sequence DESC LIMIT 64",
  endBefore: 'SELECT "offset" + weight FROM message WHERE session = ? AND sequence < ? ORDER BY sequence DESC LIMIT 1',
  messageIds: 'SELECT sequence FROM message WHERE session = ? ORDER BY sequence',
  derivedIds: 'SELECT id FROM derived WHERE session = ? ORDER BY place',
  message: `SELECT ${messageColumns} FROM message WHERE session = ? AND sequence = ?`,
  derived: `SELECT ${derivedColumns} FROM derived WHERE session = ? AND id = ?`,
  insertVector: 'INSERT INTO vector (session, id, kind, at, model, dimensions, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
  quarantineMessage: `INSERT INTO quarantine (session, id, why, row)
    SELECT session, ?, ?, json_object('at', at, 'role', role, 'name', name, 'calls', calls, 'answers', answers, 'content', content, 'payload', payload, 'external_id', external_id)
    FROM message WHERE session = ? AND sequence = ?`,
  quarantineDerived: `INSERT INTO quarantine (session, id, why, row)
    SELECT session, id, ?, json_object('kind', kind, 'at', at, 'body', body) FROM derived WHERE session = ? AND id = ?`,
  purgeQuarantine: 'DELETE FROM quarantine WHERE session = ?',
  purgeScopeQuarantine: 'DELETE FROM quarantine WHERE session IN (SELECT id FROM session WHERE scope = ?)',
  deleteSession: 'DELETE FROM session WHERE id = ?',
  putTombstone: 'INSERT INTO tombstone (key, epoch) VALUES (?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch',
  putSnapshot: 'INSERT OR REPLACE INTO snapshot (name, scope, stamp, lineage, data) VALUES (?, ?, ?, ?, ?)',
  deleteSnapshots: 'DELETE FROM snapshot WHERE scope = ?',
  removals: 'SELECT count FROM removal WHERE scope = ?',
  countRemoval: 'INSERT INTO removal (scope, count) VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1',
  readStamp: "SELECT value FROM meta WHERE name = 'stamp'",
  writeStamp: "UPDATE meta SET value = ? WHERE name = 'stamp'",
  version: 'PRAGMA data_version',
} as const
