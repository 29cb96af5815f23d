import { defineConfig } from 'vite';

/** Mermaid as one classic script: a frame without an origin cannot load modules. */
export default defineConfig({
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    outDir: 'dist/mermaid',
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: false,
    chunkSizeWarningLimit: 5000,
    lib: { entry: 'mermaid/frame.ts', formats: ['iife'], name: 'diagrams', fileName: () => 'frame.js' },
  },
});
