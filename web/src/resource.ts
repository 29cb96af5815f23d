// A value that is loaded from the server, and loaded again when the vault changes.

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from './api';
import { changes } from './live';
import { effect } from '@preact/signals';

export interface Resource<T> {
  data: T | null;
  error: ApiError | null;
  loading: boolean;
  reload: () => void;
}

interface Options {
  /** Milliseconds to wait after a change of the vault; false does not follow changes. */
  live?: number | false;
  /** Keeps the former value while another key is loaded. */
  keep?: boolean;
}

/** Loads a value for a key; a null key loads nothing. Answers of former keys are dropped. */
export function useResource<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>, options: Options = {}): Resource<T> {
  const [state, setState] = useState<{ key: string | null; data: T | null; error: ApiError | null; loading: boolean }>({
    key,
    data: null,
    error: null,
    loading: key !== null,
  });
  const [turn, setTurn] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  const settings = useRef(options);
  settings.current = options;

  // Before the browser paints, so that the request does not wait for a picture.
  useLayoutEffect(() => {
    if (key === null) {
      setState((old) => ({ key, data: settings.current.keep ? old.data : null, error: null, loading: false }));
      return;
    }
    const controller = new AbortController();
    setState((old) => ({ key, data: old.key === key || settings.current.keep ? old.data : null, error: old.key === key ? old.error : null, loading: true }));
    loader.current(controller.signal).then(
      (data) => {
        if (!controller.signal.aborted) setState({ key, data, error: null, loading: false });
      },
      (cause: unknown) => {
        if (controller.signal.aborted) return;
        const error = cause instanceof ApiError ? cause : new ApiError(0, { kind: 'internal', message: String(cause) });
        // A server that is away is told at the top of the page; what is shown stays.
        setState((old) => ({ key, data: error.kind === 'offline' && old.key === key ? old.data : null, error, loading: false }));
      },
    );
    return () => controller.abort();
  }, [key, turn]);

  useEffect(() => {
    let timer: number | undefined;
    let first = true;
    const stop = effect(() => {
      changes.value;
      if (first) {
        first = false;
        return;
      }
      const { live = 30 } = settings.current;
      if (live === false) return;
      window.clearTimeout(timer);
      timer = window.setTimeout(() => setTurn((value) => value + 1), live);
    });
    return () => {
      stop();
      window.clearTimeout(timer);
    };
  }, []);

  const current = state.key === key || options.keep;
  return {
    data: current ? state.data : null,
    error: state.key === key ? state.error : null,
    loading: state.loading || state.key !== key,
    reload: () => setTurn((value) => value + 1),
  };
}
