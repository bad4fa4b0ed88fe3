import { useState } from 'preact/hooks'

const maxCharacters = 1_500

/** Placeholders of masked secrets, such as `⟨secret:513611⟩`. */
const placeholder = /(⟨[^⟩\s]{1,80}⟩)/g

type MessageTextProps = {
  text: string
  /** Part of the text to mark: [start, end). */
  span?: readonly [start: number, end: number] | undefined
}

/** The text of a message. Long texts are cut until the reader asks for the rest. */
export function MessageText({ text, span }: MessageTextProps) {
  const [isWhole, setIsWhole] = useState(span !== undefined)
  const isCut = !isWhole && text.length > maxCharacters
  const shown = isCut ? text.slice(0, maxCharacters) : text
  return (
    <div class="message-text">
      {span === undefined ? (
        <Placeholders text={shown} />
      ) : (
        <>
          <Placeholders text={shown.slice(0, span[0])} />
          <mark>{shown.slice(span[0], span[1])}</mark>
          <Placeholders text={shown.slice(span[1])} />
        </>
      )}
      {isCut && (
        <button type="button" class="button small" onClick={() => setIsWhole(true)}>
          Show all {text.length.toLocaleString('en')} characters
        </button>
      )}
    </div>
  )
}

/** A text whose masked secrets are set apart. */
const Placeholders = ({ text }: { text: string }) => (
  <>
    {text.split(placeholder).map((part, index) =>
      index % 2 === 1 ? (
        <span key={index} class="secret">
          {part}
        </span>
      ) : (
        part
      ),
    )}
  </>
)
