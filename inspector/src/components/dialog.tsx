import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'

type DialogProps = { title: string; onClose: () => void; children: ComponentChildren }

/** A modal dialog; Escape closes it. Where it closes, the element that had the focus has it again. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null)
  const titleId = useId()
  useLayoutEffect(() => {
    const dialog = element.current
    dialog?.showModal()
    return () => dialog?.close()
  }, [])
  // Not `onClose`: the browser dispatches `close` in a later task, where it would close a dialog opened in between.
  const cancel = (event: Event): void => {
    // Choosing no file in a field of the dialog bubbles as `cancel`, too.
    if (event.target !== element.current) return
    event.preventDefault()
    onClose()
  }
  return (
    <dialog ref={element} class="dialog" aria-labelledby={titleId} onCancel={cancel}>
      <h2 id={titleId}>{title}</h2>
      {children}
    </dialog>
  )
}

type FormDialogProps = Omit<DialogProps, 'children'> & {
  /** Label of the button that submits. */
  action: string
  isDangerous?: boolean
  /** Performs the action; a failure is shown in the dialog. */
  onSubmit: (form: FormData) => Promise<void>
  children: ComponentChildren
}

/** A dialog with fields and one action. */
export function FormDialog({ title, action, isDangerous = false, onSubmit, onClose, children }: FormDialogProps) {
  const [error, setError] = useState('')
  const [isBusy, setIsBusy] = useState(false)
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault()
    setIsBusy(true)
    setError('')
    try {
      await onSubmit(new FormData(event.currentTarget as HTMLFormElement))
      onClose()
    } catch (cause) {
      setError(cause instanceof Error ? cause.message : String(cause))
      setIsBusy(false)
    }
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <form class="stack" onSubmit={(event) => void submit(event)}>
        {children}
        {error !== '' && (
          <p class="danger" role="alert">
            {error}
          </p>
        )}
        <div class="row end">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class={`button ${isDangerous ? 'danger-solid' : 'primary'}`} disabled={isBusy}>
            {isBusy ? 'Working…' : action}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
