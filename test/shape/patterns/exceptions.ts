/** Patterns of these files are applied to texts of limited length and may take polynomial time in it. */
export type BoundedText = {
  /** File, or folder with a slash at the end. */
  readonly path: string
  /** Start of the pattern; without it, all patterns of the file or folder. */
  readonly pattern?: string
  readonly maxCharacters: number
  /** Place that enforces the limit. */
  readonly reason: string
}

export const boundedTexts: readonly BoundedText[] = [
  {
    path: 'src/upkeep/extract/slots.ts',
    pattern: String.raw`\p{Lu}\S*$`,
    maxCharacters: 80,
    reason: 'applied to a match of workingTitle, which has a label and at most 30 characters',
  },
  {
    path: 'src/upkeep/summarise/cues.ts',
    pattern: String.raw`(?:[,\s]+(?:(?:ha)`,
    maxCharacters: 80,
    reason: 'measureTrail reads the last 80 characters',
  },
  {
    path: 'src/selection/identifiers.ts',
    pattern: 'https?:',
    maxCharacters: 240,
    reason: 'findMentions reads pieces of lines, which findSpans limits to maxLineChars',
  },
  {
    path: 'src/evaluation/futureReference.ts',
    pattern: 'https?:',
    maxCharacters: 400,
    reason: 'findIdentifiers reads maxWordCharacters of each word',
  },
]

/** Limits that only the campaign needs: it finds more than the static analysis. */
export const boundedInCampaign: readonly BoundedText[] = [
  ...['slots', 'statements', 'preferences', 'phrases', 'clauses'].map((name) => ({
    path: `src/upkeep/extract/${name}.ts`,
    maxCharacters: 2_000,
    reason: 'clauses are parts of sentences, which userSentences limits to maxSentenceChars',
  })),
  {
    path: 'src/handoff/restore/record.ts',
    pattern: '# ',
    maxCharacters: 2_000,
    reason: 'includeTitle reads maxTitleChars',
  },
  {
    path: 'src/text/secrets/requestValues.ts',
    pattern: String.raw`htpasswd[^\n]* -`,
    maxCharacters: 300,
    reason: 'applied to the 300 characters before a password',
  },
  {
    path: 'src/upkeep/extract/names.ts',
    pattern: String.raw`\\w.*$`,
    maxCharacters: 80,
    reason: 'applied to the words of the language tables',
  },
]

/** False findings of the campaign only. */
export const falseInCampaign: readonly FalseFinding[] = [
  {
    path: 'src/text/json.ts',
    pattern: '"(?:[^',
    reason: 'compactJson has parsed the text: it has no string without an end, which each quote would search for',
  },
]

/** Patterns that take linear time, although the static analysis reports them. */
export type FalseFinding = { readonly path: string; readonly pattern: string; readonly reason: string }

export const falseFindings: readonly FalseFinding[] = [
  {
    path: 'src/text/secrets/fileValues.ts',
    pattern: String.raw`(?:\s|\\[nrt]|["'`,
    reason: 'a comment ends with its line: `#` is a sign or starts a comment once per line, of which 8 are read',
  },
  {
    path: 'src/upkeep/extract/ownText.ts',
    pattern: '("""',
    reason: 'a block ends at the end of the text at the latest, so that none is searched for twice',
  },
  {
    path: 'src/tokenizers/splitPatterns.ts',
    pattern: "'(?:[sSſ",
    reason: 'another alternative matches what one has read in vain',
  },
  {
    path: 'src/tokenizers/splitPatterns.ts',
    pattern: String.raw`[^\r\n\p{L}\p{N}]?`,
    reason: 'another alternative matches what one has read in vain',
  },
]
