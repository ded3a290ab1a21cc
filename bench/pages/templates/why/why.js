if (matchMedia("(max-width: 640px)").matches) document.querySelectorAll("details.evidence").forEach((part) => { part.open = false; });
