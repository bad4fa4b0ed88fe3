import { derivedColumns, messageColumns, sessionColumns } from './rows.ts'

/** The statements of a writer. */
export const statements = {
  session: `SELECT ${sessionColumns} FROM session WHERE scope = ? AND name = ?`,
  epoch: 'SELECT epoch FROM tombstone WHERE key = ?',
  begin: `INSERT INTO session (scope, name, epoch, revision, stamp, removals, learnt, started, touched, expires, messages, last, weight, asked, gaps)
    VALUES (?, ?, ?, 0, 0, 0, 0, ?, ?, ?, 0, 0, 0, NULL, '[]')`,
  update: `UPDATE session SET revision = ?, stamp = ?, removals = ?, learnt = ?, touched = ?, expires = ?, messages = ?, last = ?, weight = ?, asked = ?, gaps = ? WHERE id = ?`,
  operation: 'SELECT first, last FROM operation WHERE session = ? AND id = ?',
  done: 'INSERT INTO operation (session, id, revision, first, last) VALUES (?, ?, ?, ?, ?)',
  prune: 'DELETE FROM operation WHERE session = ? AND revision <= ?',
  append: `INSERT INTO message (session, terms, sequence, at, role, name, tokens, line_tokens, tokenizer, weight, "offset", calls, answers, content, sum)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  put: `INSERT INTO derived (session, id, kind, at, body, sum) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (session, id) DO UPDATE SET kind = excluded.kind, at = excluded.at, body = excluded.body, sum = excluded.sum`,
  dropMessage: 'DELETE FROM message WHERE session = ? AND sequence = ?',
  dropDerived: 'DELETE FROM derived WHERE session = ? AND id = ?',
  dropVector: 'DELETE FROM vector WHERE session = ? AND id = ?',
  asked:
    "SELECT sequence, content FROM message WHERE session = ? AND role = 'user' AND sequence < ? ORDER BY sequence DESC LIMIT 64",
  messageIds: 'SELECT sequence FROM message WHERE session = ? ORDER BY sequence',
  derivedIds: 'SELECT id FROM derived WHERE session = ? ORDER BY place',
  message: `SELECT ${messageColumns} FROM message WHERE session = ? AND sequence = ?`,
  derived: `SELECT ${derivedColumns} FROM derived WHERE session = ? AND id = ?`,
  point: 'INSERT INTO vector (session, id, kind, at, model, dimensions, data) VALUES (?, ?, ?, ?, ?, ?, ?)',
  keepMessage: `INSERT INTO quarantine (session, id, why, row)
    SELECT session, ?, ?, json_object('at', at, 'role', role, 'name', name, 'calls', calls, 'answers', answers, 'content', content)
    FROM message WHERE session = ? AND sequence = ?`,
  keepDerived: `INSERT INTO quarantine (session, id, why, row)
    SELECT session, id, ?, json_object('kind', kind, 'at', at, 'body', body) FROM derived WHERE session = ? AND id = ?`,
  purge: 'DELETE FROM quarantine WHERE session = ?',
  purgeScope: 'DELETE FROM quarantine WHERE session IN (SELECT id FROM session WHERE scope = ?)',
  end: 'DELETE FROM session WHERE id = ?',
  bury: 'INSERT INTO tombstone (key, epoch) VALUES (?, ?) ON CONFLICT DO UPDATE SET epoch = excluded.epoch',
  snapshot: 'INSERT OR REPLACE INTO snapshot (name, scope, stamp, lineage, data) VALUES (?, ?, ?, ?, ?)',
  unsnap: 'DELETE FROM snapshot WHERE scope = ?',
  removals: 'SELECT count FROM removal WHERE scope = ?',
  removed: 'INSERT INTO removal (scope, count) VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1',
  stamp: "SELECT value FROM meta WHERE name = 'stamp'",
  stamped: "UPDATE meta SET value = ? WHERE name = 'stamp'",
  version: 'PRAGMA data_version',
} as const
