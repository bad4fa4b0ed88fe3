import stringWidth from 'fast-string-width'

/** Writes streamed text and breaks its lines between words. In a pipe, text passes unchanged. */
export class WordWrap {
  private readonly columns: number
  private readonly write: (text: string) => void
  private word = ''
  private column = 0
  private isEmpty = true

  constructor(columns: number, write: (text: string) => void) {
    this.columns = columns
    this.write = write
  }

  push(text: string): void {
    if (text === '') return
    this.isEmpty = false
    if (this.columns === Number.POSITIVE_INFINITY) {
      this.write(text)
      return
    }
    for (const part of text.split(/([ \n])/)) {
      if (part === ' ' || part === '\n') this.endWord(part)
      else this.word += part
    }
  }

  /** Writes the last word, and a line break if there was any text. */
  end(): void {
    if (this.isEmpty) return
    this.flush()
    this.write('\n')
  }

  private endWord(separator: ' ' | '\n'): void {
    this.flush()
    if (separator === '\n') {
      this.write('\n')
      this.column = 0
    } else if (this.column > 0 && this.column < this.columns) {
      this.write(' ')
      this.column++
    }
  }

  private flush(): void {
    const width = stringWidth(this.word)
    if (this.column > 0 && this.column + width > this.columns) {
      this.write('\n')
      this.column = 0
    }
    this.write(this.word)
    // A word that is wider than the terminal continues on its next line.
    this.column = (this.column + width) % this.columns
    this.word = ''
  }
}

/** Breaks the lines of a text between words. */
export function wrapWords(text: string, columns: number): string {
  const parts: string[] = []
  const wrapped = new WordWrap(columns, (part) => parts.push(part))
  wrapped.push(text)
  wrapped.end()
  return parts.join('').replace(/\n$/, '')
}
