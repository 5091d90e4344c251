{
  const frame = document.currentScript.previousElementSibling;
  addEventListener("message", (event) => {
    const height = Number(event.data?.gradcliHeight);
    if (event.source === frame.contentWindow && height > 0) frame.style.height = `${Math.ceil(height)}px`;
  });
}
