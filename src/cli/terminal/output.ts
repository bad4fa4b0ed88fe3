import { styleText } from 'node:util'
import type { Json } from '../../domain/entry.ts'

/** A line of output, optionally with emphasis where the terminal has colours. */
export type Line = string | { readonly text: string; readonly style: 'bold' | 'dim' | 'yellow' }

/** Writes a result to standard output: one JSON value with `--json`, lines of text otherwise. */
export function printResult(json: boolean | undefined, value: unknown, lines: readonly Line[]): void {
  process.stdout.write(json === true ? `${JSON.stringify(value)}\n` : formatLines(lines))
}

/** Writes lines to standard error, without control characters. */
export function printNote(...lines: readonly string[]): void {
  process.stderr.write(lines.map((line) => `${stripControlCharacters(line)}\n`).join(''))
}

/** Formats lines for standard output, without control characters of their text. */
export const formatLines = (lines: readonly Line[]): string => lines.map(formatLine).join('')

function formatLine(line: Line): string {
  if (typeof line === 'string') return `${stripControlCharacters(line)}\n`
  // Styled only in a terminal, as NO_COLOR and FORCE_COLOR ask.
  return `${styleText(line.style, stripControlCharacters(line.text), { stream: process.stdout })}\n`
}

/** Removes control characters that a terminal would execute, and bidirectional overrides; keeps newlines and tabs. */
export const stripControlCharacters = (text: string): string =>
  text.replaceAll(/[^\P{Cc}\n\t]|[\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu, '')

/** Formats a timestamp as `2026-03-01 09:00:00 UTC`. */
export const formatTime = (at: number): string =>
  Number.isFinite(at) && Math.abs(at) < 8.64e15
    ? `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')} UTC`
    : 'unknown time'

/** Collapses whitespace, so that a text takes one line. */
export const toSingleLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()

/** Formats a fact or a piece of knowledge as `key: value`, or as the value alone when the key is empty. */
export function formatStatement({ key, value }: { readonly key: string; readonly value: Json }): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return key === '' ? text : `${key}: ${text}`
}

/** Formats a range of message ids: `m1–m18`, or `m1` for a single message. */
export const formatRange = (first: string, last: string): string => (first === last ? first : `${first}–${last}`)
