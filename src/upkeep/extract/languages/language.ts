/** Alternatives of a regular expression: in lower case, without accents and with straight apostrophes. */
type Alternatives = string

/**
 * Rules that find facts in one language, as data. All patterns are matched case-insensitively against text without
 * accents (`foldText`), so `\b` works in every language. A pattern must be linear: no nested unbounded repetitions.
 */
export type LanguageRules = {
  /** ISO 639-1 code. */
  readonly code: string
  /** Frequent words that tell the language, separated by spaces. They never are the subject of a key. */
  readonly markers: string
  /** First words of a new clause; a comma or a conjunction before them ends the previous clause. */
  readonly openings: Alternatives
  /** First words of a clause that a comma separates, but `and` does not. */
  readonly commaOpenings: Alternatives
  /** Conjunctions that end a clause wherever they are. */
  readonly conjunctions: Alternatives
  /** Conjunctions that end a clause before an opening. */
  readonly coordinators: Alternatives
  /** Words before a statement that do not change it, such as `also`. */
  readonly leadIns: Alternatives
  /** First words of clauses that suppose something. */
  readonly hypothetical: Alternatives
  /** First words of questions. */
  readonly questions: Alternatives
  /** Ends of clauses after which somebody else is quoted, or an example follows. */
  readonly reporting: Alternatives
  readonly negation: Alternatives
  /** Words that express a wish. */
  readonly wish: Alternatives
  /** Signs that a statement replaces an earlier one. */
  readonly change: Alternatives
  /** Months, weekdays and other capitalised words that are not names. */
  readonly notNames: Alternatives
  /** True if only names are capitalised inside a sentence. */
  readonly capitalsAreNames: boolean
  /** Requests to remember what follows. */
  readonly reminder: Alternatives
  /** Complete requests to remember what was said before. */
  readonly bareReminder: Alternatives
  /** True if the qualifiers of a noun follow it: `numero de pedido`. */
  readonly nounFirst: boolean
  /** `my` and `our`. */
  readonly possessive: Alternatives
  readonly article: Alternatives
  /** Verbs between an attribute and its value, with the words before the value. */
  readonly copula: Alternatives
  /** Adjectives and nouns that do not distinguish attributes, such as `new`. */
  readonly fillers: Alternatives
  /** Nouns that are no attribute, such as `problem`. */
  readonly vagueNouns: Alternatives
  /** Nouns by attribute. */
  readonly attributes: Readonly<Record<string, Alternatives>>
  /** Nouns for people and animals by relation. */
  readonly relations: Readonly<Record<string, Alternatives>>
  /** First person subject of a statement, up to and including its last space or apostrophe. */
  readonly subject: Alternatives
  /** Statements about the subject by attribute; the last group is the value. */
  readonly statements: readonly (readonly [attribute: string, pattern: string])[]
  /** Starts of decisions; the rest is the choice. */
  readonly decisions: Alternatives
  /** Starts of clauses about what a project uses; a technology must follow. */
  readonly uses: Alternatives
  /** Starts of prohibitions and of lasting demands. */
  readonly prohibitions: Alternatives
  readonly demands: Alternatives
  /** A limit before a number and its unit. */
  readonly limits: Alternatives
  readonly units: Alternatives
  /** Starts of preferences; the rest is what is preferred. */
  readonly preferences: Alternatives
  /** Known subjects of preferences; the last group is the value. */
  readonly topics: readonly (readonly [key: string, pattern: string])[]
  /** Habits and inabilities of the user: the start of the clause up to its verb. */
  readonly habits: Alternatives
  /** Orders that last, such as `from now on`. */
  readonly lasting: Alternatives
  /** Postponements: the group `noun` is what is moved; the new value follows. */
  readonly reschedules: Alternatives
  /** Refers to an attribute of the clause before: `the new one is`. */
  readonly newOne: Alternatives
  /** Starts of `call me …`; a name follows. */
  readonly names: Alternatives
}
